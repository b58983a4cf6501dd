// Whether a JSON text names a member of an object twice: JSON.parse takes the last one and says nothing (RFC 8259 §4).

const [quote, backslash, colon] = ['"', '\\', ':'].map((one) => one.charCodeAt(0));

/** The colons of a JSON text that stand outside of its strings: one for each member. */
const countColons = (text: string): number => {
  let count = 0;
  let inString = false;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === quote) inString = !inString;
    else if (inString && unit === backslash) at++;
    else if (!inString && unit === colon) count++;
  }
  return count;
};

/** The members of all objects in a parsed value; not recursive, since a text may nest as deep as it is long. */
const countMembers = (value: unknown): number => {
  let count = 0;
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null) continue;
    const inside = Object.values(next);
    if (!Array.isArray(next)) count += inside.length;
    open.push(...inside);
  }
  return count;
};

/** Whether `text`, which was parsed as `value`, names a member of one object more than once. */
export const namesTwice = (text: string, value: unknown): boolean =>
  countColons(text) !== countMembers(value);

/**
 * Whether an object in a parsed value has a member named `__proto__`. JSON.parse makes it a member like any other, and
 * whatever copies the object afterwards takes it for the prototype: checks by name would miss it.
 */
export const namesPrototype = (value: unknown): boolean => {
  const open = [value];
  while (open.length > 0) {
    const next = open.pop();
    if (typeof next !== 'object' || next === null) continue;
    if (Object.hasOwn(next, '__proto__')) return true;
    open.push(...Object.values(next));
  }
  return false;
};
