const curl = `curl http://127.0.0.1:3000/v1/authentication -H "x-api-key: $PHONEPROOF_API_KEY" -H 'content-type: application/json' \\
  -d '{"customer_uuid":"6f1e7d2c-8a4b-4c3d-9e5f-0a1b2c3d4e5f","phone_number":"+33612345678"}'`;

export default function Page() {
  return (
    <main>
      <h1>An app that verifies phone numbers under /v1</h1>
      <pre>{curl}</pre>
      <p>The code is printed where this app runs.</p>
    </main>
  );
}
