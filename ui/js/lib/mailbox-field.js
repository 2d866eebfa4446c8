// A text field that opens a mailbox: by name, by address, or by `Display Name <address>` as mail programs copy it. It suggests the
// names of mailboxes.

import * as paths from './paths.js';
import { Combobox } from './combobox.js';
import { address } from './format.js';
import { suggestMailboxes } from './mailbox-suggestions.js';
import { go } from './router.js';

/**
 * Opens the mailbox when the form is submitted or a suggestion is chosen. Reports an invalid name at the field.
 * @param {HTMLFormElement} form
 * @param {HTMLInputElement} input
 * @param {{ beforeOpen?: () => void, isInline?: boolean }} [options] `beforeOpen` is called before the page changes; `isInline` is
 *   that of `Combobox`.
 */
export function setUpMailboxField(form, input, { beforeOpen, isInline } = {}) {
  const open = (/** @type {string} */ name) => {
    beforeOpen?.();
    go(paths.mailbox(name));
  };
  const combobox = new Combobox(input, { label: 'Mailboxes', load: suggestMailboxes, choose: open, isInline });
  input.after(combobox.list);
  // Otherwise the browser blocks the submission after an invalid name.
  form.noValidate = true;
  input.addEventListener('input', () => input.setCustomValidity(''));
  input.addEventListener('keydown', ({ key, isComposing, defaultPrevented }) => key === 'Escape' && !isComposing && !defaultPrevented && input.blur());
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const name = address(input.value.trim()).address.trim();
    if (!name) return input.focus();
    if (paths.isDotSegment(name) || !name.isWellFormed()) {
      combobox.close();
      input.setCustomValidity(`“${name.toWellFormed()}” is not a mailbox name. Enter a name such as james, or an address such as james@example.org.`);
      input.reportValidity();
      return;
    }
    combobox.close();
    open(name);
  });
}
