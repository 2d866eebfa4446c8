// Formats numbers, sizes, times and addresses for display.

import * as settings from './settings.js';

const COUNT = new Intl.NumberFormat('en');

/** The formats of times, which depend on the settings. */
let times = createTimeFormats();
window.addEventListener('restante:setting', () => (times = createTimeFormats()));

function createTimeFormats() {
  const options = timeOptions();
  const format = (/** @type {Intl.DateTimeFormatOptions} */ more) => new Intl.DateTimeFormat(undefined, { ...options, ...more });
  return {
    isUtc: options.timeZone === 'UTC',
    exact: format({ dateStyle: 'full', timeStyle: 'medium' }),
    minute: format({ hour: '2-digit', minute: '2-digit' }),
    second: format({ hour: '2-digit', minute: '2-digit', second: '2-digit' }),
    day: format({ day: 'numeric', month: 'short' }),
    date: format({ day: 'numeric', month: 'short', year: 'numeric' }),
    // Compared, not shown.
    sameDay: new Intl.DateTimeFormat('en-CA', { timeZone: options.timeZone }),
  };
}

/**
 * Returns the clock and the time zone of the settings for `Intl.DateTimeFormat`.
 * @returns {Intl.DateTimeFormatOptions}
 */
export function timeOptions() {
  /** @type {Record<settings.Settings['clock'], Intl.DateTimeFormatOptions>} */
  const clocks = { system: {}, 24: { hourCycle: 'h23' }, 12: { hourCycle: 'h12' } };
  return { ...clocks[settings.get('clock')], ...(settings.get('timeZone') === 'utc' && { timeZone: 'UTC' }) };
}

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
  const [then, today] = [times.sameDay.format(millis), times.sameDay.format(now)];
  if (then === today) return times.minute.format(millis);
  return year(then) === year(today) ? times.day.format(millis) : times.date.format(millis);
}

/**
 * Formats a time with seconds, `14:03:27`; as the day if it is not today.
 * @param {number} millis
 * @param {number} [now]
 */
export function clock(millis, now = Date.now()) {
  return times.sameDay.format(millis) === times.sameDay.format(now) ? times.second.format(millis) : ago(millis, now);
}

/**
 * Formats the day of a time: `3 Nov 2026`.
 * @param {number} millis
 */
export const date = (millis) => times.date.format(millis);

/**
 * Formats a time with day and seconds, in words, and with the time zone if it is not that of the browser.
 * @param {number} millis
 */
export const exact = (millis) => times.exact.format(millis) + (times.isUtc ? ' UTC' : '');

/**
 * Returns the year of a day as `sameDay` formats it.
 * @param {string} day
 */
const year = (day) => day.slice(0, day.indexOf('-'));

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
