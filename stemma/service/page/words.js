// Which words of a passage to mark for a query. An approximation of what the engines match: it decides colours, never results.

const WORD = /[\p{L}\p{N}\p{M}]+/gu;
const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;
// The English analyzer's stop words: they match nothing, so they are not marked.
const STOP_WORDS = new Set(
  "a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with".split(" "),
);

/** The word without its commonest English endings. */
function stem(word) {
  const lower = word.normalize("NFC").toLowerCase();
  if (lower.length <= 4) return lower.replace(/s$/, "");
  return lower.replace(/(ing|edly|ed|ies|es|s|ly|e|y)$/, "") || lower;
}

const LEAD = 240; // characters of a passage that are surely visible before it is cut off
const BEFORE = 90; // context kept before the first marked word of a later stretch

/** Where to begin showing a passage, so that its first marked word is seen: 0, or the start of a word shortly before it. */
export function beginning(pieces) {
  const first = pieces.findIndex(([, marked]) => marked);
  const before = pieces.slice(0, Math.max(first, 0)).map(([text]) => text).join("");
  if (before.length <= LEAD) return 0;
  const from = before.length - BEFORE;
  const space = before.slice(from).search(/\s\S/u);
  return space < 0 ? before.length : from + space + 1;
}

/** The pieces from this index of the whole on. */
export function from(pieces, index) {
  const kept = [];
  for (const [text, marked] of pieces) {
    if (index < text.length) kept.push([text.slice(index), marked]);
    index = Math.max(0, index - text.length);
  }
  return kept;
}

/** [text, marked] pieces that add up to the passage. */
export function markedPieces(passage, query) {
  const asked = query.match(WORD) ?? [];
  const spaced = asked.filter((word) => !UNSPACED.test(word) && !STOP_WORDS.has(word.toLowerCase()));
  const unspaced = asked.filter((word) => UNSPACED.test(word));
  const stems = new Set(spaced.map(stem));
  const spans = [];
  for (const { 0: word, index } of passage.matchAll(WORD)) {
    if (stems.has(stem(word))) spans.push([index, index + word.length]);
  }
  for (const word of unspaced) {
    for (let at = passage.indexOf(word); at >= 0; at = passage.indexOf(word, at + word.length)) spans.push([at, at + word.length]);
  }
  spans.sort((one, other) => one[0] - other[0]);
  const pieces = [];
  let done = 0;
  for (const [start, end] of spans) {
    if (end <= done) continue;
    pieces.push([passage.slice(done, start), false], [passage.slice(Math.max(start, done), end), true]);
    done = end;
  }
  pieces.push([passage.slice(done), false]);
  return pieces.filter(([text]) => text);
}
