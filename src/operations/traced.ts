import type { Telemetry } from "../ports/telemetry.js";
import type { Operations } from "./operations.js";

/** What requests ask for, traced as steps. */
export function tracedOperations(operations: Operations, telemetry: Telemetry): Operations {
  const step = <T>(name: string, work: () => Promise<T>, result: (answer: T) => string) => telemetry.step({ kind: "operation", name, facts: {} }, work, result);
  const statusOf = ({ status }: { readonly status: string }) => status;
  const answered = () => "answered";
  return {
    ...operations,
    createAuthentication: (...asked) => step("create", () => operations.createAuthentication(...asked), statusOf),
    retry: (...asked) => step("retry", () => operations.retry(...asked), statusOf),
    check: (...asked) => step("check", () => operations.check(...asked), statusOf),
    verifications: {
      ...operations.verifications,
      start: (...asked) => step("start", () => operations.verifications.start(...asked), statusOf),
      check: (...asked) => step("check", () => operations.verifications.check(...asked), statusOf),
    },
    lookup: (...asked) => step("lookup", () => operations.lookup(...asked), answered),
  };
}
