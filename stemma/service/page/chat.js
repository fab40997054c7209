// The chat view: a conversation, and an answer as it is written.

import { ask, readMessages } from "./api.js";
import { showConversations } from "./conversations.js";
import { byId, count } from "./dom.js";
import { eventsOf } from "./events.js";
import { messageItem } from "./message.js";

let conversation = null; // conversation_id of what is shown; null: one that begins with the next question
let pending = null;
let latest = 0;

/** Shows the conversation `id`, or an empty one; coming back to the one that is shown reads it anew. */
export async function showChat(_parameters, id) {
  pending?.abort(); // nothing of a turn that is broken off is stored
  pending = null;
  conversation = id || null;
  document.title = "Chat · Stemma";
  say("");
  const mine = (latest += 1);
  byId("messages").replaceChildren();
  await Promise.all([showConversations(conversation, say), showMessages(mine)]);
}

async function showMessages(mine) {
  let cursor = conversation ? -1 : null;
  try {
    while (cursor !== null) {
      const page = await readMessages(conversation, cursor);
      if (mine !== latest) return;
      byId("messages").append(...page.messages.map(messageItem));
      cursor = page.next_cursor;
    }
    byId("messages").lastElementChild?.scrollIntoView({ block: "nearest" });
  } catch (problem) {
    if (mine === latest) say(problem.message, true);
  }
}

async function send() {
  const text = byId("question").value.trim();
  if (!text || pending) return;
  const mine = (pending = new AbortController());
  const answer = { role: "assistant", content: "", citations: [], degraded: [] };
  const asked = messageItem({ role: "user", content: text });
  let shown = messageItem(answer);
  const show = () => {
    const next = messageItem(answer);
    shown.replaceWith(next);
    shown = next;
  };
  byId("messages").append(asked, shown);
  byId("question").value = "";
  say("Searching …");
  try {
    const body = conversation ? { question: text, conversation_id: conversation } : { question: text };
    let whole = false;
    for await (const [name, data] of eventsOf(await ask(body, mine.signal))) {
      if (name === "retrieval") say(`Answering from ${count(data.sources.length, "passage")} …`);
      if (name === "token") answer.content += data.text;
      if (name === "citations") answer.citations = data.citations;
      if (name === "error") throw new Error([data.detail, data.remedy].filter(Boolean).join(" "));
      if (name === "done") {
        whole = true;
        answer.degraded = data.degraded;
        conversation = data.conversation_id;
      }
      if (name !== "retrieval" && name !== "reasoning") show();
    }
    if (!whole) throw new Error("The answer broke off.");
    history.replaceState(null, "", `#/chat/${encodeURIComponent(conversation)}`);
    say("");
    await showConversations(conversation, say);
  } catch (problem) {
    if (pending !== mine) return; // another conversation is shown
    asked.remove();
    shown.remove();
    if (!byId("question").value) byId("question").value = text;
    say(`${problem.message} Nothing of this turn was kept.`, true);
  } finally {
    if (pending === mine) pending = null;
  }
}

function say(text, failed = false) {
  byId("chat-state").textContent = text;
  byId("chat-state").classList.toggle("error", failed);
}

byId("chat-form").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});
byId("question").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
byId("new-conversation").addEventListener("click", () => {
  if (location.hash === "#/chat") showChat(null, "");
  else location.hash = "#/chat";
  byId("question").focus();
});
