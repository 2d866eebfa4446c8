// The headline of a message: subject, sender, recipients, time, size, tags, and the mailboxes that contain it.

/** @import { ShownMessage } from '../../types.js' */

import { h } from '../../lib/dom.js';
import { exact, size, timeOptions } from '../../lib/format.js';
import { visible } from '../../lib/visible.js';
import { clamped } from './clamp.js';
import { recipients, replyTo } from './envelope.js';
import { headingLevel } from './heading.js';
import { mailboxes } from './mailboxes.js';
import { initial, people, person } from './people.js';
import { TagEditor } from './tag-editor.js';

/** Exact, but short enough for a phone; the tooltip has the long form. @type {Intl.DateTimeFormatOptions} */
const MOMENT = { weekday: 'short', day: 'numeric', month: 'short', year: 'numeric', hour: '2-digit', minute: '2-digit', second: '2-digit' };

/** @param {ShownMessage} message */
export function headline(message) {
  const { to, cc, bcc } = recipients(message);
  return h('header', { class: 'message-headline' },
    subject(message.subject),
    h('span', { class: 'message-initial', 'aria-hidden': 'true' }, initial(message.from)),
    h('div', { class: 'message-line' },
      h('div', { class: 'message-from' }, h('span', { class: 'hidden' }, 'From '), person(message.from, '(no sender)')),
      facts(message)),
    h('div', { class: 'message-line' },
      h('div', { class: 'message-people' },
        people('To', 'message-to', to),
        people('Cc', 'message-cc', cc),
        people('Bcc', 'message-bcc', bcc),
        people('Reply-To', 'message-reply-to', replyTo(message))),
      h('div', { class: 'message-marks' }, mailboxes(message), message.whole && new TagEditor(message))));
}

/** @param {string} text */
function subject(text) {
  const shown = visible(text).trim();
  return clamped(h(headingLevel(), { class: 'message-subject', dir: 'auto', tabindex: -1 }, shown || h('em', { class: 'soft' }, '(no subject)')), 'subject');
}

/** @param {ShownMessage} message */
function facts({ date, 'posix-millis': millis, size: bytes }) {
  const options = timeOptions();
  const format = new Intl.DateTimeFormat(undefined, { ...MOMENT, ...options, ...(options.timeZone && { timeZoneName: 'short' }) });
  return h('p', { class: 'message-facts' },
    h('time', { datetime: date, title: `Received on ${exact(millis)}` }, format.format(millis)),
    h('span', { class: 'number' }, size(bytes)));
}
