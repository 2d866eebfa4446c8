// Formats numbers, sizes, times and addresses for display.

const COUNT = new Intl.NumberFormat('en');
const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: 'full', timeStyle: 'medium' });
const CLOCK = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit' });
const SECOND = new Intl.DateTimeFormat(undefined, { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const DAY = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short' });
const DATE = new Intl.DateTimeFormat(undefined, { day: 'numeric', month: 'short', year: 'numeric' });

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAYS = 24 * HOUR;

/**
 * `1,234`.
 * @param {number} value
 */
export const count = (value) => COUNT.format(value);

/**
 * `1 message`, `2 messages`.
 * @param {number} value
 * @param {string} one
 * @param {string} [many]
 */
export const plural = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/**
 * `812 B`, `4.2 KB`, `13 MB`: two significant digits.
 * @param {number} bytes
 */
export function size(bytes) {
  const units = ['B', 'KB', 'MB', 'GB', 'TB'];
  let value = bytes;
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  const digits = unit === 0 || value >= 9.95 ? 0 : 1;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

/**
 * Formats a time relative to now: `now`, `5 min`, `14:03`, `3 Nov`. A time in the future is `now`, because clocks differ.
 * @param {number} millis
 * @param {number} [now]
 */
export function ago(millis, now = Date.now()) {
  const passed = now - millis;
  if (passed < MINUTE) return 'now';
  if (passed < HOUR) return `${Math.floor(passed / MINUTE)} min`;
  const [then, today] = [new Date(millis), new Date(now)];
  if (then.toDateString() === today.toDateString()) return CLOCK.format(then);
  return then.getFullYear() === today.getFullYear() ? DAY.format(then) : DATE.format(then);
}

/**
 * Formats a time with seconds, `14:03:27`; as the day if it is not today.
 * @param {number} millis
 * @param {number} [now]
 */
export function clock(millis, now = Date.now()) {
  return new Date(millis).toDateString() === new Date(now).toDateString() ? SECOND.format(millis) : ago(millis, now);
}

/**
 * Formats a time with day and seconds, in words.
 * @param {number} millis
 */
export const exact = (millis) => EXACT.format(millis);

/**
 * `3 days 4 h`, `12 min`, `8 s`: at most the two largest units.
 * @param {number} millis
 */
export function duration(millis) {
  const units = /** @type {const} */ ([[DAYS, 'day', 'days'], [HOUR, 'h', 'h'], [MINUTE, 'min', 'min'], [1000, 's', 's']]);
  const words = [];
  let rest = Math.max(0, millis);
  for (const [length, one, many] of units) {
    const whole = Math.floor(rest / length);
    rest -= whole * length;
    if (whole > 0) words.push(`${whole} ${whole === 1 ? one : many}`);
  }
  return words.slice(0, 2).join(' ') || '0 s';
}

/**
 * Splits `Display Name <address>`. Runs in linear time, because the text comes from a message.
 * @param {string} text
 */
export function address(text) {
  const open = text.endsWith('>') ? text.lastIndexOf('<') : -1;
  if (open < 0) return { name: text, address: text };
  const inside = text.slice(open + 1, -1);
  return { name: text.slice(0, open).trim() || inside, address: inside };
}
