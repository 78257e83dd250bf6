const smoke = require("../smoke.cjs");

smoke(require).then(() => process.argv.slice(2).map(require));
