/** Runs one whole verification with the package that `load` imports. Prints the statuses. */
module.exports = async function smoke(load) {
  const { createVerifier, generateApiKey, VerifierError } = await load("phoneproof");
  const { memoryStore } = await load("phoneproof/memory");
  const customer_uuid = "5f0c7f3e-1d2b-4c3a-9e8f-7a6b5c4d3e2f";
  const sent = [];
  const verifier = createVerifier({
    store: memoryStore(),
    sender: {
      async send(message) {
        sent.push(message);
        return { outcome: "accepted" };
      },
    },
    secret: "a secret of the smoke test, 32 characters and more",
    countries: "all",
    customers: [{ customer_uuid, keys: [generateApiKey().key] }],
  });
  const created = await verifier.createAuthentication({ customer_uuid, phone_number: "+33612345678" });
  const { authentication_uuid } = created;
  const code = sent[0].code;
  const wrong = code === "000000" ? "000001" : "000000";
  const statuses = [created.status];
  for (const check_code of [wrong, code, code]) statuses.push((await verifier.check({ customer_uuid, authentication_uuid, check_code })).status);
  statuses.push((await verifier.lookup({ customer_uuid, phone_number: "+33612345678" })).line_type);
  const fault = await verifier.check({ customer_uuid, authentication_uuid: customer_uuid, check_code: code }).catch((error) => error);
  statuses.push(fault instanceof VerifierError ? fault.code : `not a VerifierError: ${fault}`);
  await verifier.close();
  console.log(statuses.join(" "));
};
