// What this browser remembers: the theme, recently opened mailboxes, how messages are shown. A browser that keeps
// nothing, or that somebody else wrote into, is not a reason to fail. Whenever something is written, here or in another
// tab, the window is told: `restante:theme`, `restante:recent` and so on.

const PREFIX = 'restante.';
const MAX_RECENT = 12;
/** Nothing of ours is longer; what is, somebody else wrote. */
const MAX_TEXT = 16_384;
const MAX_NAME = 512;

/**
 * @template T
 * @param {string} name
 * @param {T} otherwise
 * @returns {T}
 */
export function read(name, otherwise) {
  try {
    const text = localStorage.getItem(PREFIX + name);
    const value = text === null || text.length > MAX_TEXT ? null : JSON.parse(text);
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
  tell(name);
}

window.addEventListener('storage', ({ key, storageArea }) => {
  if (storageArea !== localStorage) return;
  if (key?.startsWith(PREFIX)) tell(key.slice(PREFIX.length));
  // Somebody cleared it all.
  if (key === null) ['theme', 'recent'].forEach(tell);
});

/** @param {string} name */
function tell(name) {
  window.dispatchEvent(new Event(`restante:${name}`));
}

/** The mailboxes that were opened here, the last one first. */
export function recent() {
  return read('recent', /** @type {string[]} */ ([])).filter((name) => typeof name === 'string' && name.length <= MAX_NAME && name.isWellFormed()).slice(0, MAX_RECENT);
}

/** @param {string} mailbox */
export function opened(mailbox) {
  write('recent', [mailbox, ...recent().filter((other) => other !== mailbox)].slice(0, MAX_RECENT));
}

/** @param {string} mailbox */
export function forget(mailbox) {
  write('recent', recent().filter((other) => other !== mailbox));
}
