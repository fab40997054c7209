// Elements from values: text is only ever set as text, so nothing in a document can become markup.

export const byId = (id) => document.getElementById(id);

/** An element; properties that are `aria-…`, `data-…` or `role` become attributes, null children are left out. */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (/^(aria-|data-|role$|scope$|datetime$)/.test(name)) made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** 1234 -> "1,234"; with a unit: "1 page", "2 pages". */
export function count(number, unit = null, plural = `${unit}s`) {
  const digits = number.toLocaleString("en");
  return unit ? `${digits} ${number === 1 ? unit : plural}` : digits;
}

/** "page 3", "pages 3–4", or null. */
export function pages(start, end) {
  if (start === null || start === undefined) return null;
  return start === end ? `page ${start}` : `pages ${start}–${end}`;
}

/** "line 3", "lines 3–9". */
export const lines = (start, end) => (start === end ? `line ${start}` : `lines ${start}–${end}`);
