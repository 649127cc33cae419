// Tokens and cost in words.

const NUMBER = new Intl.NumberFormat("en");

/** Return one line about usage, such as "1,381 tokens in, 16 out, 2 requests, $0.0042". */
export function usageText(usage) {
  const parts = [
    `${NUMBER.format(usage.input_tokens)} tokens in`,
    `${NUMBER.format(usage.output_tokens)} out`,
  ];
  if (usage.cached_tokens) parts.push(`${NUMBER.format(usage.cached_tokens)} cached`);
  parts.push(usage.requests === 1 ? "1 request" : `${NUMBER.format(usage.requests)} requests`);
  parts.push(usage.cost === null ? "cost unknown" : costText(usage.cost));
  return parts.join(", ");
}

/** Return a number with its noun, such as "1 message" or "2,000 messages". */
export function counted(number, noun) {
  return `${NUMBER.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** Return a cost in dollars; null, as for a model whose price is not known, is "unknown". */
export function costText(cost) {
  if (cost === null) return "unknown";
  return `$${cost === 0 || cost >= 1 ? cost.toFixed(2) : cost.toPrecision(2)}`;
}

/** Fill the cells of one column: `[data-run="input_tokens"]` and so on; null empties it. */
export function showUsage(table, column, usage) {
  for (const cell of table.querySelectorAll(`[data-${column}]`)) {
    const name = cell.dataset[column];
    if (usage === null) cell.textContent = "–";
    else
      cell.textContent = name === "cost" ? costText(usage.cost) : NUMBER.format(usage[name] ?? 0);
  }
}
