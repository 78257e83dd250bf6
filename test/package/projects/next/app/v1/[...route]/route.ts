import { nextHandlers } from "phoneproof/next";
import { verifier } from "../../../verifier";

export const { GET, POST } = nextHandlers(verifier);
