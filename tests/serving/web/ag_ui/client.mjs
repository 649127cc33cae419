// Talks to an AG-UI server with the official client; for each line of JSON on stdin prints one for each
// turn and an empty line.
import { createInterface } from "node:readline";
import { HttpAgent } from "@ag-ui/client";

const warnings = [];
console.warn = (...words) => warnings.push(words.join(" "));
console.error = console.warn;

async function talk(program) {
  const { url, threadId, headers = {}, turns } = program;
  const agent = new HttpAgent({ url, threadId, headers });
  let unanswered = [];

  for (const turn of turns) {
    if (turn.say) agent.addMessage({ id: crypto.randomUUID(), role: "user", content: turn.say });
    for (const id of turn.results ? unanswered : []) {
      const calls = agent.messages.flatMap((message) => message.toolCalls ?? []);
      const name = calls.find((call) => call.id === id).function.name;
      const content = turn.results[name];
      agent.addMessage({ id: crypto.randomUUID(), role: "tool", toolCallId: id, content });
    }
    const { tools, context, forwardedProps } = turn;
    const resume = turn.answer?.map((entry, index) => ({
      interruptId: agent.pendingInterrupts[index]?.id,
      ...entry,
    }));
    const events = [];
    let error = null;
    try {
      await agent.runAgent(
        { tools, context, forwardedProps, resume },
        {
          onEvent({ event }) {
            events.push(event);
            if (event.type === turn.abortAt) agent.abortRun();
          },
          onRunFinishedEvent(finished) {
            unanswered = finished.pendingToolCallIds ?? [];
          },
        },
      );
    } catch (caught) {
      error = String(caught);
    }
    const interrupts = agent.pendingInterrupts;
    console.log(
      JSON.stringify({ events, messages: agent.messages, interrupts, unanswered, error, warnings }),
    );
  }
}

for await (const line of createInterface({ input: process.stdin })) {
  warnings.length = 0;
  await talk(JSON.parse(line));
  console.log();
}
