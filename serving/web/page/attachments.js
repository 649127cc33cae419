// Pictures and files of messages. Nothing is loaded from another host: a remote picture is a link.

import { el } from "./dom.js";
import { externalLink, safeUrl } from "./markdown/inline.js";

/** Return an element that shows the attachments of a message; null if it has none. */
export function attachmentList(attachments = []) {
  if (attachments.length === 0) return null;
  return el("div", { class: "attachments" }, ...attachments.map(attachment));
}

function attachment({ media_type: type, url, data, name }) {
  const label = name || type;
  const source = data ? `data:${type};base64,${data}` : url;
  if (source.startsWith("data:")) {
    const isPicture = type.startsWith("image/") && source.startsWith("data:image/");
    if (isPicture) return picture(source, name);
    if (type.startsWith("audio/") && source.startsWith("data:audio/"))
      return el("audio", { src: source, controls: true, "aria-label": label });
    return el("a", { href: source, download: label }, `Download ${label}`);
  }
  const safe = safeUrl(source);
  return safe ? externalLink(safe, label) : el("span", {}, label);
}

function picture(source, name) {
  return el("img", { src: source, alt: name || "Picture without a description", loading: "lazy" });
}

/** Return a file that a person has chosen, in the JSON form of an attachment. */
export async function readAttachment(file) {
  const url = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
  const data = url.slice(url.indexOf(",") + 1);
  return { media_type: file.type || "application/octet-stream", data, name: file.name };
}
