// A form that adds a test message to a mailbox.

import * as api from '../lib/api.js';
import * as paths from '../lib/paths.js';
import { fill, h } from '../lib/dom.js';
import { icon } from '../lib/icons.js';
import { go } from '../lib/router.js';
import { toast } from '../lib/feedback.js';

/**
 * @param {string} mailbox
 * @param {{ isShown?: boolean }} [options] `isShown` is false if the page does not show the mailbox: then a toast has a link to the message.
 */
export function testMail(mailbox, { isShown = true } = {}) {
  const from = h('input', { class: 'field', name: 'from', type: 'text', value: 'Test <test@example.org>', autocomplete: 'off', spellcheck: 'false' });
  const subject = h('input', { class: 'field', name: 'subject', type: 'text', value: 'Test message', autocomplete: 'off' });
  const text = h('textarea', { class: 'field', name: 'text', rows: 4 }, 'Hello!\n\nYour code is 482913.\n');
  const problem = h('p', { class: 'note bad', role: 'alert', hidden: true });
  const button = h('button', { class: 'button main', type: 'submit' }, 'Send');
  const send = async (/** @type {Event} */ event) => {
    event.preventDefault();
    button.disabled = true;
    problem.hidden = true;
    try {
      const { messages } = await api.send(mailbox, { from: from.value, subject: subject.value, text: text.value });
      const stored = messages.find((message) => message.mailbox === mailbox);
      // A rule can discard the message, and a script can redirect it. On the page of the mailbox, a stored message appears by an event.
      if (!stored) toast('The message was accepted, but not stored in this mailbox. Check the rules and the script of the server.');
      else if (!isShown) toast(`The message was stored in the mailbox ${mailbox}.`, { action: { label: 'Open', run: () => go(paths.mailbox(mailbox, stored.id)) } });
    } catch (error) {
      problem.hidden = false;
      fill(problem, icon('warning'), api.sentence(error));
    } finally {
      button.disabled = false;
    }
  };
  return h('details', { class: 'test-mail' },
    h('summary', { class: 'button' }, 'Send a test message'),
    h('form', { class: 'sheet', onsubmit: send },
      labelled('From', from), labelled('Subject', subject), labelled('Text', text),
      problem, h('div', { class: 'row' }, button)));
}

/**
 * @param {string} name
 * @param {HTMLElement} field
 */
const labelled = (name, field) => h('label', {}, h('span', {}, name), field);
