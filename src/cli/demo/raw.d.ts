/**
 * A file's text: `import text from "./file.css?raw"`. Vite supports such imports; for esbuild, `raw-text.ts` adds them.
 */
declare module "*?raw" {
  const text: string;
  export default text;
}
