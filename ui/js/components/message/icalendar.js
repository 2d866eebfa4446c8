// Reads the events of an iCalendar file (RFC 5545), as far as an invitation is shown. Any input is accepted: what cannot be read is
// omitted.

/** Longer files are truncated, in characters. */
export const MAX_LENGTH = 262_144;

const MAX_EVENTS = 5;

/** Longer texts are truncated, in characters. */
const MAX_TEXT = 500;

/** The longest duration, in milliseconds: ten years. */
const MAX_DURATION = 10 * 366 * 86_400_000;

/**
 * A time: a moment, a day without a time, or a time in an unknown time zone.
 * @typedef {object} CalendarTime
 * @property {number} millis For a day, and in an unknown zone, as if it were in UTC.
 * @property {'moment' | 'day' | 'floating'} kind
 * @property {string | null} zone The name of the unknown time zone.
 */

/**
 * @typedef {object} CalendarEvent
 * @property {string} uid
 * @property {string} summary
 * @property {string} location
 * @property {string} organizer A name or an address.
 * @property {number} attendees
 * @property {CalendarTime | null} start
 * @property {CalendarTime | null} end The end of a day is the day after it.
 * @property {boolean} repeats
 * @property {boolean} isCancelled
 */

/** @typedef {{ name: string, parameters: Map<string, string>, value: string }} Property */

/**
 * Returns the method, such as `REQUEST`, and the first events.
 * @param {string} text
 * @returns {{ method: string, events: CalendarEvent[] }}
 */
export function readCalendar(text) {
  const lines = text.slice(0, MAX_LENGTH).replace(/\r?\n[ \t]/gu, '').split(/\r?\n/u);
  let method = '';
  /** @type {CalendarEvent[]} */
  const events = [];
  /** The components that are open. @type {string[]} */
  const open = [];
  /** @type {Property[]} */
  let properties = [];
  for (const line of lines) {
    const property = readProperty(line);
    if (!property) continue;
    const { name, value } = property;
    const component = value.trim().toUpperCase();
    if (name === 'BEGIN') {
      open.push(component);
      if (component === 'VEVENT') properties = [];
    } else if (name === 'END') {
      if (component === 'VEVENT' && open.at(-1) === 'VEVENT') events.push(readEvent(properties));
      open.pop();
      if (events.length === MAX_EVENTS) break;
    } else if (open.at(-1) === 'VEVENT') properties.push(property);
    else if (name === 'METHOD') method = component.slice(0, MAX_TEXT);
  }
  return { method, events };
}

/**
 * Reads a line: `NAME;PARAMETER="value":value`.
 * @param {string} line
 * @returns {Property | null}
 */
function readProperty(line) {
  const parts = [];
  let [start, isQuoted, end] = [0, false, -1];
  for (let at = 0; at < line.length && end < 0; at += 1) {
    const char = line[at];
    if (char === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (char === ';' || char === ':')) {
      parts.push(line.slice(start, at));
      start = at + 1;
      if (char === ':') end = at;
    }
  }
  if (end < 0) return null;
  const parameters = parts.slice(1).map((part) => /** @type {[string, string]} */ ([part.split('=')[0].trim().toUpperCase(), part.slice(part.indexOf('=') + 1).replaceAll('"', '')]));
  return { name: parts[0].trim().toUpperCase(), parameters: new Map(parameters), value: line.slice(end + 1) };
}

/**
 * @param {Property[]} properties
 * @returns {CalendarEvent}
 */
function readEvent(properties) {
  const find = (/** @type {string} */ wanted) => properties.find(({ name }) => name === wanted);
  const words = (/** @type {string} */ name) => readText(find(name)?.value ?? '');
  const start = readTime(find('DTSTART'));
  const organizer = find('ORGANIZER');
  return {
    uid: words('UID'),
    summary: words('SUMMARY'),
    location: words('LOCATION'),
    organizer: readText(organizer?.parameters.get('CN') || organizer?.value.replace(/^mailto:/iu, '') || ''),
    attendees: properties.filter(({ name }) => name === 'ATTENDEE').length,
    start,
    end: readTime(find('DTEND')) ?? after(start, find('DURATION')?.value ?? ''),
    repeats: properties.some(({ name }) => name === 'RRULE' || name === 'RDATE'),
    isCancelled: words('STATUS').toUpperCase() === 'CANCELLED',
  };
}

/**
 * Resolves escapes.
 * @param {string} value
 */
const readText = (value) => value.slice(0, 2 * MAX_TEXT).replace(/\\(.)/gu, (_, char) => (char === 'n' || char === 'N' ? '\n' : char)).slice(0, MAX_TEXT).trim();

/**
 * Reads `20261120T140000Z`, `20261120T140000` or `20261120`.
 * @param {Property | undefined} property
 * @returns {CalendarTime | null}
 */
function readTime(property) {
  const found = /^(\d{4})(\d\d)(\d\d)(?:T(\d\d)(\d\d)(\d\d)?(Z?))?$/u.exec(property?.value.trim() ?? '');
  if (!property || !found) return null;
  const [year, month, day, hour, minute, second] = found.slice(1, 7).map((digits) => Number(digits ?? 0));
  if (year < 1000 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60) return null;
  // A day that does not exist is one of the next month.
  if (new Date(Date.UTC(year, month - 1, day)).getUTCMonth() !== month - 1) return null;
  const millis = Date.UTC(year, month - 1, day, hour, minute, second);
  if (found[4] === undefined) return { millis, kind: 'day', zone: null };
  if (found[7] === 'Z') return { millis, kind: 'moment', zone: null };
  const zone = property.parameters.get('TZID')?.slice(0, MAX_TEXT) ?? '';
  const offset = zone === '' ? null : zoneOffset(zone, millis);
  // The offset can differ between the guess and the result, at a change of the clock.
  if (offset !== null) return { millis: millis - (zoneOffset(zone, millis - offset) ?? offset), kind: 'moment', zone: null };
  return { millis, kind: 'floating', zone: zone || null };
}

/**
 * Returns the offset of a time zone from UTC at a moment, in milliseconds, or null if the browser does not know the zone.
 * @param {string} timeZone
 * @param {number} millis
 */
function zoneOffset(timeZone, millis) {
  try {
    const format = new Intl.DateTimeFormat('en', { timeZone, hourCycle: 'h23', year: 'numeric', month: 'numeric', day: 'numeric', hour: 'numeric', minute: 'numeric', second: 'numeric' });
    const parts = Object.fromEntries(format.formatToParts(millis).map(({ type, value }) => [type, Number(value)]));
    return Date.UTC(parts.year, parts.month - 1, parts.day, parts.hour, parts.minute, parts.second) - millis;
  } catch {
    return null;
  }
}

/**
 * Returns the end of an event with a duration such as `PT1H30M` or `P1D`.
 * @param {CalendarTime | null} start
 * @param {string} duration
 * @returns {CalendarTime | null}
 */
function after(start, duration) {
  const found = /^\+?P(?:(\d{1,6})W)?(?:(\d{1,6})D)?(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,6})S)?)?$/u.exec(duration.trim());
  if (!start || !found) return null;
  const [weeks, days, hours, minutes, seconds] = found.slice(1).map((digits) => Number(digits ?? 0));
  const length = ((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000;
  return length > 0 && length <= MAX_DURATION ? { ...start, millis: start.millis + length } : null;
}
