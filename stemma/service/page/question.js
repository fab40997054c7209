// A question in a dialog, answered by yes, by a text, or by nothing.

import { element } from "./dom.js";

/** Resolves to true, or to the text where `value` is one, once `action` is chosen; to null otherwise. */
export function question(text, { action, value = null, danger = false }) {
  const field = value === null ? null : element("input", { type: "text", value, maxLength: 500, required: true, autofocus: true, "aria-label": text });
  const cancel = element("button", { type: "button", autofocus: !field, onclick: () => dialog.close() }, "Cancel");
  const dialog = element("dialog", { "aria-label": text },
    element("form", { method: "dialog" }, element("p", {}, text), field,
      element("p", { className: "choices" }, cancel, element("button", { className: danger ? "danger" : "", value: "yes" }, action))));
  document.body.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes" ? (field?.value.trim() ?? true) : null);
    });
    dialog.showModal();
  });
}
