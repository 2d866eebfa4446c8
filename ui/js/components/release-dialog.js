// The dialog that releases a message: sends it to real mailboxes through a target of the relay.

/** @import { RelayTarget, Whole } from '../types.js' */

import * as api from '../lib/api.js';
import * as relay from '../lib/relay.js';
import { fill, find, h, set } from '../lib/dom.js';
import { openDialog, toast } from '../lib/feedback.js';
import { plural } from '../lib/format.js';
import { icon } from '../lib/icons.js';
import { isAllowed, splitAddresses } from '../lib/relay-recipients.js';
import { visible } from '../lib/visible.js';
import { checked } from './message/envelope.js';

/** The maximum number of addresses and patterns that the dialog lists. */
const MAX_LISTED = 10;

/**
 * @param {string} id The id of the message, or of a copy.
 * @param {RelayTarget[]} targets Not empty.
 * @param {Whole | null} whole Null if it is not loaded yet: the dialog loads it, and then proposes its recipients.
 */
export function openReleaseDialog(id, targets, whole) {
  let known = whole?.recipients ?? [];
  const select = h('select', { class: 'field', id: 'release-target' }, targets.map(({ name, host, port }) => h('option', { value: name }, visible(`${name} (${host}:${port})`))));
  const field = h('textarea', { class: 'field release-recipients', id: 'release-recipients', rows: 4, 'aria-describedby': 'release-help release-hints', autocomplete: 'off', autocapitalize: 'none', spellcheck: 'false' });
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
      const entry = await relay.release(id, { target: target().name, to });
      dialog.close();
      toast(`The message will be sent to ${plural(entry.recipients.length, 'recipient')} through ${entry.target}.`);
    } catch (error) {
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
    h('div', { class: 'release-field', hidden: targets.length === 1 }, h('label', { for: 'release-target' }, 'Target'), select),
    h('div', { class: 'release-field' }, h('label', { for: 'release-recipients' }, 'Recipients, one per line or separated by commas'), field, help),
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
  if (whole === null) loadRecipients(id).then((recipients) => {
    known = recipients;
    propose();
  });
}

/**
 * Returns the recipients of a message, or none if they cannot be loaded.
 * @param {string} id
 * @returns {Promise<string[]>}
 */
const loadRecipients = (id) => api.whole(id).then((whole) => checked(whole)?.recipients ?? [], () => []);

/**
 * Returns what a target allows, and which one it is if there is no choice.
 * @param {RelayTarget} target
 * @param {boolean} isOnly
 */
function describeTarget({ name, host, port, allowed, blocked }, isOnly) {
  return [
    isOnly && h('p', {}, 'Through ', h('bdi', {}, visible(`${name} (${host}:${port})`))),
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
