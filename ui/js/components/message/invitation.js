// <message-invitations>: the calendar events of a message as cards.

/** @import { Message, Part } from '../../types.js' */
/** @import { CalendarEvent, CalendarTime } from './icalendar.js' */

import * as api from '../../lib/api.js';
import * as paths from '../../lib/paths.js';
import { fill, h } from '../../lib/dom.js';
import { plural, timeOptions } from '../../lib/format.js';
import { icon } from '../../lib/icons.js';
import { visible } from '../../lib/visible.js';
import { mediaType } from './attachment-links.js';
import { MAX_LENGTH, readCalendar } from './icalendar.js';

/** The maximum number of calendar files of a message that are read, and of events that are shown. */
const MAX_FILES = 3;
const MAX_EVENTS = 5;

/** @type {Record<string, string>} */
const METHODS = { REQUEST: 'Invitation', CANCEL: 'Cancelled', REPLY: 'Reply', COUNTER: 'Proposed change', ADD: 'Added dates' };

/**
 * Returns the indexes of the parts that are calendar files.
 * @param {Message} message
 */
export function calendarParts({ parts }) {
  const isCalendar = (/** @type {Part} */ part) => part.role !== 'multipart' && part.size <= 2 * MAX_LENGTH && (['text/calendar', 'application/ics'].includes(mediaType(part)) || /\.ics$/iu.test(part.filename ?? ''));
  return parts.flatMap((part, index) => (isCalendar(part) ? [index] : [])).slice(0, MAX_FILES);
}

export class MessageInvitations extends HTMLElement {
  #message;
  #request = new AbortController();

  /** @param {Message} message */
  constructor(message) {
    super();
    this.#message = message;
  }

  connectedCallback() {
    if (!this.firstChild) this.#load();
  }

  disconnectedCallback() {
    this.#request.abort();
  }

  async #load() {
    const { signal } = this.#request = new AbortController();
    // Reserves the height of a card, so that the layout does not move.
    fill(this, h('div', { class: 'invitation loading-card', 'aria-busy': 'true' }));
    const { id, parts } = this.#message;
    const texts = await Promise.all(calendarParts(this.#message).map((index) => api.text(paths.part(id, index), signal, parts[index].charset ?? 'utf-8').catch(() => '')));
    if (signal.aborted) return;
    const found = texts.map(readCalendar).flatMap(({ method, events }) => events.map((event) => ({ method, event })));
    // Many programs send the same event as a part and as an attachment.
    const isFirst = (/** @type {CalendarEvent} */ { uid, start }, /** @type {number} */ at) => found.findIndex(({ event }) => event.uid === uid && event.start?.millis === start?.millis) === at;
    fill(this, found.filter(({ event }, at) => isFirst(event, at)).slice(0, MAX_EVENTS).map(({ method, event }) => card(method, event)));
  }
}

/**
 * @param {string} method
 * @param {CalendarEvent} event
 */
function card(method, { summary, location, organizer, attendees, start, end, repeats, isCancelled }) {
  const kind = isCancelled ? 'Cancelled' : METHODS[method] ?? 'Event';
  /** @type {[string, (Node | string)[]][]} */
  const rows = [
    ['When', start ? [...when(start, end), ...(repeats ? [h('span', { class: 'badge' }, 'repeats')] : [])] : []],
    ['Where', location ? [h('bdi', {}, visible(location))] : []],
    ['Organizer', organizer ? [h('bdi', {}, visible(organizer))] : []],
    ['Attendees', attendees > 0 ? [plural(attendees, 'person', 'people')] : []],
  ];
  return h('section', { class: kind === 'Cancelled' ? 'invitation cancelled' : 'invitation', 'aria-label': kind },
    icon('calendar'),
    h('div', { class: 'invitation-words' },
      h('h2', { class: 'invitation-title' }, h('bdi', {}, visible(summary) || '(no title)'), h('span', { class: 'badge' }, kind)),
      h('dl', {}, rows.filter(([, words]) => words.length > 0).map(([name, words]) => h('div', {}, h('dt', {}, name), h('dd', {}, ...words))))));
}

/**
 * Formats the time of an event in the time zone of the reader. The end is shown without the day if it is the same.
 * @param {CalendarTime} start
 * @param {CalendarTime | null} end
 * @returns {(Node | string)[]}
 */
function when(start, end) {
  const isDay = start.kind === 'day';
  // A day, and a time in an unknown zone, are stored as if they were in UTC.
  const zone = start.kind === 'moment' ? {} : { timeZone: 'UTC' };
  const format = new Intl.DateTimeFormat(undefined, { weekday: 'short', day: 'numeric', month: 'long', year: 'numeric', ...(!isDay && { hour: '2-digit', minute: '2-digit' }), ...timeOptions(), ...zone });
  // The end of whole days is the day after the last one.
  const last = end && end.kind === start.kind ? end.millis - (isDay ? 86_400_000 : 0) : start.millis;
  const words = last > start.millis ? format.formatRange(start.millis, last) : format.format(start.millis);
  const note = start.zone ? visible(start.zone) : start.kind === 'moment' ? zoneName(start.millis) : '';
  return [h('time', { datetime: new Date(start.millis).toISOString().slice(0, isDay ? 10 : 24) }, words), ...(note ? [h('span', { class: 'soft' }, note)] : [])];
}

/**
 * Returns the short name of the time zone of the reader.
 * @param {number} millis
 */
function zoneName(millis) {
  const parts = new Intl.DateTimeFormat(undefined, { timeZoneName: 'short', ...timeOptions() }).formatToParts(millis);
  return parts.find(({ type }) => type === 'timeZoneName')?.value ?? '';
}

customElements.define('message-invitations', MessageInvitations);
