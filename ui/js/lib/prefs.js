// What this browser remembers: the theme, recently opened mailboxes, how messages are shown. A browser that keeps
// nothing, or that somebody else wrote into, is not a reason to fail.

const PREFIX = 'restante.';
const MAX_RECENT = 12;

/**
 * @template T
 * @param {string} name
 * @param {T} otherwise
 * @returns {T}
 */
export function read(name, otherwise) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    const value = text === null ? null : JSON.parse(text);
    const same = typeof value === typeof otherwise && Array.isArray(value) === Array.isArray(otherwise);
    return same && value !== null ? value : otherwise;
  } catch {
    return otherwise;
  }
}

/**
 * @param {string} name
 * @param {unknown} value
 */
export function write(name, value) {
  try {
    localStorage.setItem(PREFIX + name, JSON.stringify(value));
  } catch {
    // Full, or forbidden: then it holds for this page only.
  }
}

/** The mailboxes that were opened here, the last one first. */
export function recent() {
  return read('recent', /** @type {string[]} */ ([])).filter((name) => typeof name === 'string');
}

/** @param {string} mailbox */
export function opened(mailbox) {
  write('recent', [mailbox, ...recent().filter((other) => other !== mailbox)].slice(0, MAX_RECENT));
  window.dispatchEvent(new Event('restante:recent'));
}

/** @param {string} mailbox */
export function forget(mailbox) {
  write('recent', recent().filter((other) => other !== mailbox));
  window.dispatchEvent(new Event('restante:recent'));
}
