//! Changes of a tag in all copies that the client may access and that have it. They are made in batches. After an error, the
//! messages of earlier batches are changed. Messages that arrive meanwhile keep the tag.

use restante_auth::Scope;
use restante_mail::message::{Message, Summary};
use restante_mail::tags::Tags;
use restante_mailroom::CopyKey;
use restante_store::Page;
use restante_store::overview::MAX_OVERVIEW_TAGS;

use crate::extractors::access::Access;
use crate::extractors::parameters::require_scope;
use crate::messages::changes::CHANGE_BATCH;
use crate::messages::{MessagePage, MessageRange};
use crate::response::problem::Problem;

impl Access {
    /// Renames a tag. Fails if another tag has this name; one that differs only in case is the same tag. Returns the number of
    /// messages that had the tag.
    pub async fn rename_tag(&self, tag: &str, name: &str) -> Result<usize, Problem> {
        self.check_tag_exists(tag).await?;
        let is_same_tag = name.to_lowercase() == tag.to_lowercase();
        if !is_same_tag && self.has_tag(name).await? {
            return Err(Problem::TagExists);
        }
        self.replace_tag(tag, Some(name)).await
    }

    /// Removes a tag. Returns the number of messages that had it.
    pub async fn delete_tag(&self, tag: &str) -> Result<usize, Problem> {
        require_scope(&self.grant, Scope::Read)?;
        // The overview usually decides, and then no message is read.
        if self.grant.covers_home() && !self.has_tag(tag).await? {
            return Err(Problem::NoSuchTag);
        }
        match self.replace_tag(tag, None).await? {
            0 => Err(Problem::NoSuchTag),
            count => Ok(count),
        }
    }

    /// Fails if no message has the tag. This reveals something about messages, so the scope `read` is required.
    async fn check_tag_exists(&self, tag: &str) -> Result<(), Problem> {
        require_scope(&self.grant, Scope::Read)?;
        if self.has_tag(tag).await? { Ok(()) } else { Err(Problem::NoSuchTag) }
    }

    /// Returns whether a message has the tag. It searches all messages if the overview does not decide: that of a grant for
    /// some mailboxes has only the newest messages, and other overviews have only the first [`MAX_OVERVIEW_TAGS`] tags.
    async fn has_tag(&self, tag: &str) -> Result<bool, Problem> {
        if self.grant.covers_home() {
            let (_, overview) = self.server.messages.complete_overview(self.grant.home()).await?;
            let lowercase = tag.to_lowercase();
            if overview.tags.iter().any(|count| count.tag.to_lowercase() == lowercase) {
                return Ok(true);
            }
            // The tags are sorted.
            let omitted_after = overview.tags.last().filter(|_| overview.tags.len() >= MAX_OVERVIEW_TAGS);
            if omitted_after.is_none_or(|last| lowercase < last.tag.to_lowercase()) {
                return Ok(false);
            }
        }
        self.cancellation.run_until_cancelled(self.find_tag(tag)).await
    }

    /// Searches all messages for the tag, the newest first. Only one request at a time reads a batch after its first one.
    async fn find_tag(&self, tag: &str) -> Result<bool, Problem> {
        let mut page = Page { before: None, after: None, limit: Some(CHANGE_BATCH) };
        loop {
            let mut permit = None;
            if page.before.is_some() {
                self.server.messages.continue_scan(&mut permit).await?;
            }
            let messages = self.server.mailroom.messages(self.grant.home(), page).await?.messages;
            drop(permit);
            let mut copies = messages.iter().flat_map(Message::copies);
            if copies.any(|copy| self.grant.covers(&copy.mailbox) && copy.tags.contains(tag)) {
                return Ok(true);
            }
            if messages.len() < CHANGE_BATCH {
                return Ok(false);
            }
            page.before = messages.first().map(Message::id);
        }
    }

    /// Replaces or removes a tag of all messages that have it, and returns their number. A change of a batch that has begun
    /// completes.
    async fn replace_tag(&self, tag: &str, new: Option<&str>) -> Result<usize, Problem> {
        let mut range = MessageRange { before: None, after: None, limit: CHANGE_BATCH };
        let mut count = 0;
        loop {
            let find = self.server.messages.permitted_messages(&self.grant, range);
            let MessagePage { messages, next } = self.cancellation.run_until_cancelled(find).await?;
            let is_tagged = |copy: &&Summary| copy.tags.contains(tag);
            count += messages.iter().filter(|message| message.copies().iter().any(|copy| is_tagged(&copy))).count();
            let tagged = messages.iter().flat_map(Message::copies).filter(is_tagged);
            let (old, new) = (tag.to_owned(), new.map(ToOwned::to_owned));
            // Other requests may have changed the tags since they were read.
            let update = move |tags: &Tags| with_replaced_tag(tags, &old, new.as_deref());
            self.server.mailroom.update_tags(tagged.map(CopyKey::from).collect(), update).await?;
            if next.is_none() {
                return Ok(count);
            }
            range.before = next;
        }
    }
}

fn with_replaced_tag(tags: &Tags, tag: &str, new: Option<&str>) -> Tags {
    let tag = tag.to_lowercase();
    Tags::from_valid(tags.iter().filter_map(|known| if known.to_lowercase() == tag { new } else { Some(known) }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_replaced_in_any_case() {
        let tags = Tags::new(["One", "two"]).unwrap();
        let replaced = |tag, new| with_replaced_tag(&tags, tag, new).iter().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(replaced("one", Some("ONE")), ["ONE", "two"]);
        assert_eq!(replaced("TWO", Some("three")), ["One", "three"]);
        assert_eq!(replaced("one", None), ["two"]);
        assert_eq!(replaced("one", Some("Two")), ["Two"]);
    }
}
