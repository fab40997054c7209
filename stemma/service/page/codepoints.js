// Stemma counts code points, JavaScript counts UTF-16 units: a character outside the basic plane is one there and two here.

/** The UTF-16 index of the code point `offset`; past the end: the text's length. */
export function utf16Index(text, offset) {
  let index = 0;
  for (let passed = 0; passed < offset && index < text.length; passed += 1) {
    index += text.codePointAt(index) > 0xffff ? 2 : 1;
  }
  return index;
}
