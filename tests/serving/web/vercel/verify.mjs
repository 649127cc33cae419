// Reads UI message streams with the AI SDK itself; prints what it objects to.
import { readFileSync } from "node:fs";
import { readUIMessageStream, uiMessageChunkSchema } from "ai";

const problems = [];
const streams = JSON.parse(readFileSync(process.argv[2], "utf8"));
for (const chunks of streams) {
  for (const chunk of chunks) {
    const { success } = await uiMessageChunkSchema().validate(chunk);
    if (!success) problems.push(`Not a part: ${JSON.stringify(chunk)}`);
  }
  const stream = new ReadableStream({
    start(controller) {
      chunks.forEach((chunk) => controller.enqueue(chunk));
      controller.close();
    },
  });
  const told = chunks.filter((chunk) => chunk.type === "error").map((chunk) => chunk.errorText);
  const onError = (error) => {
    if (!told.includes(error.message)) problems.push(`${error}: ${JSON.stringify(chunks)}`);
  };
  let last;
  for await (const message of readUIMessageStream({ stream, onError })) last = message;
  for (const part of last?.parts ?? []) {
    if (part.state === "streaming") problems.push(`Not ended: ${JSON.stringify(chunks)}`);
  }
}
console.log(JSON.stringify({ checked: streams.length, problems }));
