import { createVerifier } from "phoneproof";
import { memoryStore } from "phoneproof/memory";
import { consoleSender } from "phoneproof/senders/console";
import { required } from "../required.js";

export const verifier = createVerifier({
  store: memoryStore(), // or redisStore({ client }), mongoStore({ db })
  sender: consoleSender(), // prints the codes; in production a carrier
  secret: required("PHONEPROOF_SECRET"),
  countries: ["FR", "GB", "US"], // who may get messages; "all" is an invitation to fraud
});
