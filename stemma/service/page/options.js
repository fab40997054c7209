// Selects whose options come from the service: what is chosen stays chosen, though it may have gone.

import { byId, element } from "./dom.js";

/** Chooses `value`, which becomes an option where it is none. */
export function choose(select, value) {
  const known = [...select.options].some((option) => option.value === value);
  if (!known) select.append(element("option", { value }, value));
  select.value = value;
}

/** Replaces the options below the one that stands for everything, keeping what is chosen. */
export function setOptions(select, everything, options) {
  const chosen = select.value;
  select.replaceChildren(element("option", { value: "" }, everything), ...options);
  choose(select, chosen);
}

/** Fills every select of folders with the tree of [{path, name, depth}], each folder as deep as it lies. */
export function setFolders(folders) {
  for (const select of [byId("folder"), byId("documents-folder")]) {
    setOptions(select, "All", folders.map(({ path, name, depth }) => element("option", { value: path }, `${"\u2003".repeat(depth - 1)}${name}`)));
  }
}
