/** Child process of `runAlone`. Arguments: the file and the name of the function. */
import { answerCalls } from "./processes.js";

const [, , file = "", name = ""] = process.argv;

answerCalls({
  async run(argument: unknown) {
    const module = (await import(file)) as Record<string, (argument: unknown) => unknown>;
    return module[name]?.(argument);
  },
});
