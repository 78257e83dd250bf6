import { nextHandlers } from "phoneproof/next";
import { verifier } from "../../../verifier";

export const { GET, POST, PUT, PATCH, DELETE, HEAD, OPTIONS } = nextHandlers(verifier);
