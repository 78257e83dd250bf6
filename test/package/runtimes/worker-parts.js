import { tryParts } from "./parts.js";

export const worker = {
  async fetch(request) {
    return Response.json(await tryParts(await request.json()));
  },
};
