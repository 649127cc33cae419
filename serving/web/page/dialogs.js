// What the page itself asks: for the token, for the name of a chat, and whether to delete one.

/** Return a function that asks for the token of the server. */
export function tokenDialog(dialog) {
  const form = dialog.querySelector("form");
  const input = dialog.querySelector("input");
  const problem = dialog.querySelector("[role=alert]");
  return (wrong) =>
    new Promise((resolve) => {
      problem.textContent = wrong ? "The server does not accept this token." : "";
      input.value = "";
      dialog.showModal();
      input.focus();
      const onSubmit = (event) => {
        event.preventDefault();
        if (!input.value.trim()) return;
        form.removeEventListener("submit", onSubmit);
        dialog.removeEventListener("close", again);
        dialog.close();
        resolve(input.value.trim());
      };
      const again = () => dialog.showModal(); // nothing can be done without the token
      form.addEventListener("submit", onSubmit);
      dialog.addEventListener("close", again);
    });
}

/** Return a function that asks whether to delete a chat, by its title. */
export function deleteDialog(dialog) {
  const text = dialog.querySelector("p");
  return (title) =>
    new Promise((resolve) => {
      text.textContent = `Delete “${title}” and all its messages? This cannot be undone.`;
      dialog.returnValue = "";
      dialog.showModal();
      dialog.addEventListener("close", () => resolve(dialog.returnValue === "delete"), {
        once: true,
      });
    });
}

/** Return a function that asks for the title of a chat; null if it stays. */
export function renameDialog(dialog) {
  const input = dialog.querySelector("input");
  return (title) =>
    new Promise((resolve) => {
      input.value = title;
      dialog.returnValue = "";
      dialog.showModal();
      input.select();
      const onClose = () => {
        const renamed = dialog.returnValue === "rename" && input.value.trim();
        resolve(renamed || null);
      };
      dialog.addEventListener("close", onClose, { once: true });
    });
}
