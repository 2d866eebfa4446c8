// Deletes all messages in all mailboxes, after a confirmation.

import * as api from '../lib/api.js';
import { plural } from '../lib/format.js';
import { confirm, toast } from '../lib/feedback.js';

/** Returns whether the messages were deleted. */
export async function deleteEverything() {
  const isSure = await confirm({ title: 'Delete everything?', text: 'All messages in all mailboxes will be deleted. This cannot be undone.', action: 'Delete everything', danger: true });
  if (!isSure) return false;
  try {
    const { deleted } = await api.purgeAll();
    toast(`Deleted ${plural(deleted, 'message')}.`);
    return true;
  } catch (error) {
    toast(`Some messages could not be deleted. ${api.sentence(error)}`, { bad: true });
    return false;
  }
}
