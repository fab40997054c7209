// The list of conversations: open, rename, delete.

import { deleteConversation, getJson, renameConversation } from "./api.js";
import { byId, element } from "./dom.js";
import { question } from "./question.js";

let cursor = null;
let opened = "";
let say = null;
let latest = 0;

/** Reads the list anew and marks the conversation `current`; what goes wrong is told to `tell`. */
export async function showConversations(current, tell) {
  [opened, say, cursor] = [current, tell, null];
  await load();
}

async function load() {
  const mine = (latest += 1);
  const fresh = cursor === null;
  try {
    const page = await getJson(`/api/conversations?${new URLSearchParams(fresh ? {} : { cursor })}`);
    if (mine !== latest) return;
    const items = page.conversations.map(item);
    if (fresh) byId("conversations").replaceChildren(...items);
    else byId("conversations").append(...items);
    cursor = page.next_cursor;
    byId("more-conversations").hidden = !cursor;
  } catch (problem) {
    if (mine === latest) say(problem.message, true);
  }
}

function item({ conversation_id: id, title }) {
  const button = (label, act) => element("button", { type: "button", "aria-label": `${label} ${title}`, onclick: act }, label);
  return element("li", {},
    element("a", { href: `#/chat/${encodeURIComponent(id)}`, "aria-current": id === opened ? "true" : null }, title),
    button("Rename", () => rename(id, title)), button("Delete", () => remove(id, title)));
}

async function rename(id, title) {
  const name = await question("Name of the conversation", { action: "Rename", value: title });
  if (name) await change(() => renameConversation(id, name));
}

async function remove(id, title) {
  if (!(await question(`Delete “${title}” with its messages?`, { action: "Delete", danger: true }))) return;
  const gone = await change(() => deleteConversation(id));
  if (gone && id === opened) location.hash = "#/chat";
}

async function change(act) {
  try {
    await act();
  } catch (problem) {
    say(problem.message, true);
    return false;
  }
  cursor = null;
  await load();
  return true;
}

byId("more-conversations").addEventListener("click", load);
