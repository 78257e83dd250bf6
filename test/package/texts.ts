import ts from "typescript";

/** Two words in a row, as in sentences but not in names, paths and headers. */
const prose = /[a-z][a-z,;:'’)]* [a-z(`]/;
const machine = /\n|; charset=|^default-src|\{s\}|::text|^CREATE|^INSERT|^curl|ticketLife|\{name\} on/;

/** The sentences in a program's strings and templates, except field descriptions; placeholders are put in braces. */
export function textsOf(path: string, source: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && node.expression.getText() === "described") return void visit(node.arguments[0] as ts.Node);
    const text = ts.isTemplateExpression(node) ? templateText(node) : ts.isStringLiteralLike(node) ? node.text : "";
    if (prose.test(text) && !machine.test(text)) found.push(text.trim());
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(path, source, ts.ScriptTarget.Latest, true));
  return found;
}

const templateText = ({ head, templateSpans }: ts.TemplateExpression) =>
  head.text + templateSpans.map(({ expression, literal }) => `{${nameOf(expression)}}${literal.text}`).join("");

/** The last name of a placeholder: `option` for `fault.option`; … if it has none. */
function nameOf(node: ts.Expression): string {
  if (ts.isIdentifier(node)) return node.text;
  return ts.isPropertyAccessExpression(node) ? node.name.text : "…";
}
