// Talks to a server with the official client. Argument: the server's URL.
import { OpenAI } from "openai";

const [baseURL] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey: "ann-token", maxRetries: 0 });
const model = "agent-brain";
const report = {};

const messages = [{ role: "user", content: "What is 17 times 23?" }];
report.models = (await client.models.list()).data.map(({ id }) => id);

const chat = await client.chat.completions.create({ model, messages });
report.chat = chat.choices[0];

const chunks = await client.chat.completions.create({
  model,
  messages,
  stream: true,
  stream_options: { include_usage: true },
});
report.chatStream = { text: "", asides: "" };
for await (const chunk of chunks) {
  report.chatStream.text += chunk.choices[0]?.delta.content ?? "";
  report.chatStream.asides += chunk.choices[0]?.delta.reasoning_content ?? "";
  report.chatStream.finishReason ??= chunk.choices[0]?.finish_reason;
  report.chatStream.usage ??= chunk.usage;
}

const helper = client.chat.completions.stream({ model, messages });
report.helper = await helper.finalContent();

const first = await client.responses.create({ model, input: "What is 17 times 23?" });
report.response = { text: first.output_text, status: first.status };

const events = client.responses.stream({
  model,
  input: "And 391 divided by 17?",
  previous_response_id: first.id,
});
report.events = [];
for await (const event of events) report.events.push(event.type);
const final = await events.finalResponse();
report.responseStream = { text: final.output_text, kinds: final.output.map(({ type }) => type) };

try {
  await client.chat.completions.create({ model: "gpt-4.1", messages });
} catch (error) {
  report.error = { name: error.constructor.name, code: error.code, status: error.status };
}

console.log(JSON.stringify(report));
