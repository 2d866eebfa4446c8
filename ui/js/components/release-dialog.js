// The dialog that releases a message: sends it to real mailboxes through a target of the relay.

/** @import { RelayTarget, ShownMessage, Whole } from '../types.js' */

import * as api from '../lib/api.js';
import * as prefs from '../lib/prefs.js';
import * as relay from '../lib/relay.js';
import { fill, find, h, set } from '../lib/dom.js';
import { openDialog, toast } from '../lib/feedback.js';
import { plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { Poll } from '../lib/poll.js';
import { isPending } from '../lib/queue.js';
import { isAllowed, splitAddresses } from '../lib/relay-recipients.js';
import { visible } from '../lib/visible.js';
import { checked } from './message/envelope.js';

/** The maximum number of addresses and patterns that the dialog lists. */
const MAX_LISTED = 10;

/** The maximum length of the text before the subject. */
const MAX_PREFIX_LENGTH = 100;

/** The name of the preference with the text before the subject. */
const PREFIX = 'release.prefix';

/**
 * @param {string} id The id of the message, or of a copy.
 * @param {string | null} mailbox The mailbox of the copy; null if the id is that of the message.
 * @param {RelayTarget[]} targets Not empty.
 * @param {ShownMessage | null} message Null if it is not loaded yet.
 */
export function openReleaseDialog(id, mailbox, targets, message) {
  let known = message?.whole?.recipients ?? [];
  const select = h('select', { class: 'field', id: 'release-target' }, targets.map(({ name, host, port }) => h('option', { value: name }, visible(`${name} (${host}:${port})`))));
  const field = h('textarea', { class: 'field release-recipients', id: 'release-recipients', rows: 3, 'aria-describedby': 'release-help release-hints', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' });
  const sender = h('bdi', {});
  const senderLine = h('p', { class: 'release-sender' }, h('b', {}, 'From '), sender);
  const prefix = h('input', { class: 'field', id: 'release-prefix', type: 'text', placeholder: 'None, for example [Staging]', maxlength: MAX_PREFIX_LENGTH, autocomplete: 'off' });
  prefix.value = prefs.read(PREFIX, '');
  const deletes = h('input', { type: 'checkbox', id: 'release-delete' });
  const help = h('div', { class: 'release-help soft', id: 'release-help' });
  const hints = h('div', { id: 'release-hints', 'aria-live': 'polite' });
  const problem = h('div', {});
  const send = h('button', { class: 'button main', type: 'submit' }, 'Send');
  const cancel = h('button', { class: 'button', type: 'button', onclick: () => dialog.close() }, 'Cancel');

  const target = () => targets.find(({ name }) => name === select.value) ?? targets[0];
  /** The text that the dialog has filled in. */
  let proposed = '';
  const propose = () => {
    const isUnchanged = field.value === proposed;
    proposed = known.filter((address) => isAllowed(target(), address) !== false).join('\n');
    if (isUnchanged) field.value = proposed;
    fill(help, describeTarget(target(), targets.length === 1));
    check();
  };
  const check = () => {
    fill(problem);
    const chosen = splitAddresses(field.value);
    const forbidden = chosen.filter((address) => isAllowed(target(), address) === false);
    const omitted = known.filter((address) => !chosen.includes(address) && isAllowed(target(), address) === false);
    fill(hints,
      forbidden.length > 0 && h('p', { class: 'note warn' }, icon('warning'), h('span', {}, 'Not allowed by this target: ', listed(forbidden))),
      omitted.length > 0 && h('p', { class: 'release-help soft' }, 'Recipients of the message that this target does not allow: ', listed(omitted)));
  };

  let isSending = false;
  const submit = async () => {
    const to = splitAddresses(field.value);
    if (isSending) return;
    if (to.length === 0) {
      fill(problem, alert('Enter at least one recipient.'));
      field.focus();
      return;
    }
    isSending = true;
    // Not `disabled`, so that the button keeps the focus.
    set(send, { 'aria-disabled': 'true' });
    send.textContent = 'Sending…';
    fill(problem);
    try {
      const entry = await relay.release(id, { target: target().name, to, 'subject-prefix': prefix.value });
      prefs.write(PREFIX, prefix.value);
      if (deletes.checked) removeWhenDelivered(entry.id, mailbox, id);
      dialog.close();
      toast(`The message will be sent to ${plural(entry.recipients.length, 'recipient')} via ${entry.target}.`);
    } catch (error) {
      // The error of the server replaces the hint, which says the same.
      hints.querySelector('.note')?.remove();
      if (dialog.isConnected) fill(problem, alert(api.sentence(error)));
      else toast(api.sentence(error), { bad: true });
    } finally {
      isSending = false;
      set(send, { 'aria-disabled': null });
      send.textContent = 'Send';
    }
  };

  const dialog = openDialog('Release message',
    h('p', { class: 'soft' }, 'Sends this message to real mailboxes.'),
    senderLine,
    h('div', { class: 'release-field', hidden: targets.length === 1 }, h('label', { for: 'release-target' }, 'Target'), select),
    h('div', { class: 'release-field' }, h('label', { for: 'release-recipients' }, 'Recipients, one per line or separated by commas'), field, help),
    h('div', { class: 'release-field' }, h('label', { for: 'release-prefix' }, 'Text before the subject'), prefix),
    h('label', { class: 'release-delete' }, deletes, 'Delete the message here after it was delivered'),
    hints, problem, h('div', { class: 'row' }, cancel, send));
  dialog.classList.add('release-dialog');
  select.addEventListener('change', propose);
  field.addEventListener('input', check);
  field.addEventListener('keydown', (event) => {
    if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) submit();
  });
  find(dialog, 'form', HTMLFormElement).addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  propose();
  field.focus();
  const showSender = (/** @type {Whole | null | undefined} */ whole) => {
    const from = message?.from ?? whole?.from ?? '';
    const envelope = whole?.sender ?? '';
    sender.textContent = visible(from === '' || envelope === '' || from.includes(envelope) ? from || envelope : `${from} (envelope: ${envelope})`);
    senderLine.hidden = sender.textContent === '';
  };
  showSender(message?.whole);
  if (!message?.whole?.sender) api.whole(id).then(checked).then((whole) => {
    showSender(whole);
    if (known.length === 0) known = whole?.recipients ?? [];
    propose();
  }, () => {});
}

/**
 * Deletes a message when it was delivered. Before that, its content is needed.
 * @param {string} entry The id of its entry in the queue.
 * @param {string | null} mailbox The mailbox of the copy; null if the id is that of the message.
 * @param {string} id
 */
function removeWhenDelivered(entry, mailbox, id) {
  const kept = (/** @type {string} */ reason) => toast(`The released message was not deleted. ${reason}`, { bad: true });
  const poll = new Poll(async () => {
    try {
      const current = await relay.queue.entry(entry);
      if (isPending(current)) return true;
      if (current.state !== 'delivered') {
        kept('It was not delivered to all recipients.');
        return false;
      }
      await api.removeAll(mailbox, [id]);
      toast('The released message was deleted.');
      return false;
    } catch (error) {
      // Without a response or after an error of the server, the next attempt can succeed.
      if (!(error instanceof api.ApiError) || error.status === 0 || error.status >= 500) return true;
      kept(error.status === 404 ? 'Its delivery is no longer in the relay queue.' : api.sentence(error));
      return false;
    }
  }, { repetitions: Infinity });
  poll.start();
}

/**
 * Returns what a target allows, and which one it is if there is no choice.
 * @param {RelayTarget} target
 * @param {boolean} isOnly
 */
function describeTarget({ name, host, port, allowed, blocked }, isOnly) {
  return [
    isOnly && h('p', {}, 'Via ', h('bdi', {}, visible(`${name} (${host}:${port})`))),
    h('p', {}, 'Allowed: ', allowed.length > 0 ? listed(allowed) : 'no recipient'),
    blocked.length > 0 && h('p', {}, 'Blocked: ', listed(blocked)),
  ];
}

/** @param {string[]} texts */
function listed(texts) {
  const rest = texts.length - MAX_LISTED;
  return h('bdi', {}, visible(texts.slice(0, MAX_LISTED).join(', ')) + (rest > 0 ? ` and ${plural(rest, 'other')}` : ''));
}

/** @param {string} text */
const alert = (text) => h('p', { class: 'note bad', role: 'alert' }, icon('warning'), h('bdi', {}, visible(text)));
