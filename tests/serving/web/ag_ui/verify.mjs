// Checks streams of AG-UI with the official client's own rules; prints what they object to.
import { readFileSync } from "node:fs";
import { enforceEvents, verifyEvents } from "@ag-ui/client";
import { from, lastValueFrom, toArray } from "rxjs";

const problems = [];
console.warn = (...words) => problems.push(words.join(" "));
const streams = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const stream of streams) {
  try {
    await lastValueFrom(from(stream).pipe(enforceEvents(), verifyEvents(), toArray()));
  } catch (error) {
    problems.push(`${error}: ${JSON.stringify(stream)}`);
  }
}
console.log(JSON.stringify({ checked: streams.length, problems }));
