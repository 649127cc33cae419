// Talks to a server with the AI SDK's own chat; for each line of JSON on stdin prints one for each turn
// and an empty line.
import { createInterface } from "node:readline";
import { AbstractChat, DefaultChatTransport } from "ai";

class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => this.messages.push(message);
  popMessage = () => this.messages.pop();
  replaceMessage = (index, message) => (this.messages[index] = message);
  snapshot = (thing) => structuredClone(thing);
}

class Chat extends AbstractChat {}

async function talk(program) {
  const { url, id, headers = {}, body = {}, turns } = program;
  const chunks = [];
  const transport = new DefaultChatTransport({
    api: url,
    headers,
    body,
    async fetch(...request) {
      const response = await fetch(...request);
      if (response.body === null) return response;
      const [read, seen] = response.body.tee();
      (async () => {
        let text = "";
        for await (const piece of seen.pipeThrough(new TextDecoderStream())) text += piece;
        chunks.push(...text.split("\n\n").filter((line) => line.startsWith("data: ")));
      })().catch(() => {});
      return new Response(read, { status: response.status, headers: response.headers });
    },
  });
  let chat = new Chat({ id, transport, state: new State() });

  for (const turn of turns) {
    chunks.length = 0;
    const last = chat.messages.at(-1);
    const parts = last?.parts.filter((part) => part.toolCallId) ?? [];
    if (turn.say) {
      const sent = chat.sendMessage({ text: turn.say, files: turn.files, metadata: turn.metadata });
      if (turn.stopAfter) {
        while (!JSON.stringify(chat.messages).includes(turn.stopAfter)) await new Promise(setImmediate);
        await chat.stop();
      }
      await sent;
    }
    if (turn.leaveAfter) {
      chat.sendMessage({ text: turn.leave });
      while (!JSON.stringify(chat.messages).includes(turn.leaveAfter)) await new Promise(setImmediate);
      const before = chat.messages[0];
      await chat.stop(); // what a reload of the page does to the connection
      chat = new Chat({ id, transport, state: new State() });
      chat.messages = [before];
    }
    if (turn.resume) await chat.resumeStream();
    if (turn.regenerate) await chat.regenerate();
    if (turn.approve !== undefined) {
      for (const part of parts.filter((part) => part.state === "approval-requested")) {
        await chat.addToolApprovalResponse({ id: part.approval.id, ...turn.approve });
      }
      await chat.sendMessage();
    }
    if (turn.output !== undefined) {
      for (const part of parts.filter((part) => part.state === "input-available")) {
        const tool = part.type.slice("tool-".length);
        await chat.addToolOutput({ tool, toolCallId: part.toolCallId, output: turn.output });
      }
      await chat.sendMessage();
    }
    const error = chat.error ? String(chat.error) : null;
    const types = chunks.map((line) => line.slice(6)).map((text) => (text[0] === "{" ? JSON.parse(text).type : text));
    console.log(JSON.stringify({ messages: chat.messages, status: chat.status, error, types }));
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  await talk(JSON.parse(line));
  console.log();
}
