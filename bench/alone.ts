/** Child process of `runAlone`: the file and the name of the function are its arguments. */
import { answerCalls } from "./processes.js";

const [, , file = "", name = ""] = process.argv;

answerCalls({
  async run(argument: unknown) {
    const module = (await import(file)) as Record<string, (argument: unknown) => unknown>;
    return module[name]?.(argument);
  },
});
