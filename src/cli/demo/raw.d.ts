/** A file's text: `import text from "./file.css?raw"`. Vite reads such imports itself; for esbuild `raw-text.ts` does. */
declare module "*?raw" {
  const text: string;
  export default text;
}
