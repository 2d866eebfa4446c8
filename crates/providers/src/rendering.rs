//! Rendering of templates with Handlebars. Sections of Mustache (`{{#name}}`, `{{^name}}`) are supported too. Partials and
//! decorators are not: a template can contain itself with them.
//!
//! Templates and their data are untrusted. [`prepare`] limits the depth and the number of tags, [`Cost`] the work of loops, and
//! [`LimitedOutput`] the size of the result.

use std::io;

use handlebars::{
    BlockContext, Context, Handlebars, Helper, HelperDef, HelperResult, JsonTruthy as _, Output, RenderContext,
    Renderable as _, Template as Compiled, no_escape,
};
use serde_json::Value;

use crate::email::Parts;
use crate::failure::{Failure, FailureKind};
use crate::templates::Template;
use crate::text_budget::TextBudget;

/// The maximum size of the data of a template.
const MAX_DATA_BYTES: usize = 256 * 1024;
/// The maximum size of a rendered text.
const MAX_OUTPUT_BYTES: usize = 2 * 1024 * 1024;
/// The maximum size of a rendered subject.
const MAX_SUBJECT_BYTES: usize = 8 * 1024;
/// The maximum number of tags of a template.
const MAX_TAGS: usize = 5_000;
/// The maximum length of a tag.
const MAX_TAG_BYTES: usize = 500;
/// The maximum depth of blocks, including chains of `else`.
const MAX_DEPTH: usize = 50;
/// The maximum cost of a template. See [`Cost`].
const MAX_COST: usize = 200_000;
/// What a unit of cost takes from the budget of the request.
const COST_BYTES: usize = 8;
/// The blocks of Handlebars. Blocks with other names are sections.
const BLOCKS: [&str; 4] = ["each", "if", "unless", "with"];
/// The blocks of SendGrid that compare two values, and the functions of Handlebars that do.
const COMPARISONS: [(&str, &str); 6] =
    [("equals", "eq"), ("notEquals", "ne"), ("greaterThan", "gt"), ("lessThan", "lt"), ("and", "and"), ("or", "or")];
/// The name of the helper for sections.
const SECTION: &str = "restante_section";

/// Renders the texts of a template with data, which is JSON. Takes their sizes from the budget of the request.
pub(crate) fn render(template: &Template, data: &str, budget: &TextBudget) -> Result<Parts, Failure> {
    if data.len() > MAX_DATA_BYTES {
        return Err(failed(format!("the data has more than {MAX_DATA_BYTES} bytes")));
    }
    let data = if data.trim().is_empty() { "{}" } else { data };
    let value: Value = serde_json::from_str(data).map_err(|error| failed(format!("the data is not JSON: {error}")))?;
    let cost = Cost { data_bytes: data.len(), longest: longest_collection(&value) };
    let context = Context::wraps(value).map_err(failed)?;
    let Template { subject, text, html, .. } = template;
    let render = |text: &str, is_html| {
        let rendered = render_text(text, &context, &cost, budget, is_html)?;
        budget.take(rendered.len())?;
        Ok::<_, Failure>(rendered)
    };
    let subject = render(subject, false)?;
    if subject.len() > MAX_SUBJECT_BYTES {
        return Err(failed(format!("the subject has more than {MAX_SUBJECT_BYTES} bytes")));
    }
    Ok(Parts {
        subject: subject.replace(char::is_control, " "),
        text: text.as_deref().map(|text| render(text, false)).transpose()?,
        html: html.as_deref().map(|html| render(html, true)).transpose()?,
        attachments: Vec::new(),
    })
}

fn render_text(
    text: &str,
    context: &Context,
    cost: &Cost,
    budget: &TextBudget,
    is_html: bool,
) -> Result<String, Failure> {
    if !text.contains("{{") {
        return Ok(text.to_owned());
    }
    let (prepared, cost) = prepare(text, cost)?;
    budget.take(cost.saturating_mul(COST_BYTES))?;
    let compiled = Compiled::compile(&prepared).map_err(failed)?;
    let mut handlebars = Handlebars::new();
    handlebars.register_helper(SECTION, Box::new(Section));
    if !is_html {
        handlebars.register_escape_fn(no_escape);
    }
    let mut output = LimitedOutput(String::new());
    compiled.render(&handlebars, context, &mut RenderContext::new(None), &mut output).map_err(failed)?;
    Ok(output.0)
}

fn failed(reason: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Invalid, format!("The template cannot be rendered: {reason}."))
}

/// The cost of rendering: the number of tags, multiplied by the iterations of the loops around them. A function can copy the data.
struct Cost {
    data_bytes: usize,
    /// The length of the longest list or object in the data.
    longest: usize,
}

impl Cost {
    fn of_tag(&self, tag: &str, loops: usize) -> usize {
        let has_function = tag.contains('(') || is_value(tag) && tag.trim().contains(char::is_whitespace);
        let weight = if has_function { 1 + self.data_bytes / 256 } else { 1 };
        let iterations = u32::try_from(loops).map_or(usize::MAX, |loops| self.longest.max(1).saturating_pow(loops));
        iterations.saturating_mul(weight)
    }
}

/// Returns whether a tag is neither the start nor the end of a block.
fn is_value(tag: &str) -> bool {
    let tag = tag.trim_start_matches(|c: char| c == '~' || c.is_whitespace());
    !tag.starts_with(['#', '^', '/']) && chained_block(tag).is_none()
}

/// Returns the length of the longest list or object. The recursion is limited, because `serde_json` limits the depth.
fn longest_collection(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(longest_collection).max().unwrap_or_default().max(items.len()),
        Value::Object(members) => members.values().map(longest_collection).max().unwrap_or_default().max(members.len()),
        _ => 1,
    }
}

/// An open block: the name that closes it in the prepared text, and its contribution to the depths.
struct OpenBlock {
    name: &'static str,
    is_loop: bool,
    depth: usize,
}

/// Checks the limits of a template. Returns it with sections as blocks of Handlebars, and its cost.
fn prepare(text: &str, limits: &Cost) -> Result<(String, usize), Failure> {
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<OpenBlock> = Vec::new();
    let (mut rest, mut tags, mut cost) = (text, 0, 0_usize);
    while let Some((before, after)) = rest.split_once("{{") {
        out.push_str(before);
        let end = if after.starts_with("!--") { "--}}" } else { "}}" };
        let (tag, after) = after.split_once(end).ok_or_else(|| failed("a tag is not closed"))?;
        rest = after;
        if tag.starts_with('!') {
            continue;
        }
        let tag = &comparison(tag).unwrap_or_else(|| tag.to_owned());
        tags += 1;
        cost = cost.saturating_add(limits.of_tag(tag, open.iter().filter(|block| block.is_loop).count()));
        if tags > MAX_TAGS || tag.len() > MAX_TAG_BYTES || cost > MAX_COST {
            return Err(failed("it is too large, or its loops are too long"));
        }
        let inner = tag.trim_start_matches('~').trim_end_matches('~').trim();
        let (kind, name) = (inner.chars().next().unwrap_or_default(), inner.get(1..).unwrap_or_default().trim());
        match kind {
            '>' | '*' => return Err(failed("partials and decorators are not supported")),
            '#' if name.starts_with(['>', '*']) => return Err(failed("partials and decorators are not supported")),
            '{' if name.starts_with('{') => return Err(failed("raw blocks are not supported")),
            '#' => {
                let word = name.split_whitespace().next().unwrap_or_default();
                let known = BLOCKS.into_iter().find(|known| *known == word);
                let is_loop = matches!(known, Some("each") | None);
                if known.is_none() && word != name {
                    return Err(failed(format!("the helper {word} is not supported")));
                }
                if name.contains('(') && !matches!(known, Some("if" | "unless")) {
                    return Err(failed("loops over subexpressions are not supported"));
                }
                let opened = OpenBlock { name: known.unwrap_or(SECTION), is_loop, depth: 1 };
                let tag = if known.is_some() { tag.to_owned() } else { format!("#{SECTION} {name}") };
                open.push(opened);
                push_tag(&mut out, &tag);
            }
            '^' if name.contains(char::is_whitespace) => {
                return Err(failed(format!("{name} is not the name of a section")));
            }
            '^' if !name.is_empty() => {
                open.push(OpenBlock { name: "unless", is_loop: false, depth: 1 });
                push_tag(&mut out, &format!("#unless {name}"));
            }
            '/' => {
                let block = open.pop().ok_or_else(|| failed("a block is closed that is not open"))?;
                push_tag(&mut out, &format!("/{}", block.name));
            }
            _ => {
                match (open.last_mut(), chained_block(inner)) {
                    (Some(block), Some("if" | "unless")) => block.depth += 1,
                    (_, Some(name)) => return Err(failed(format!("{name} after else is not supported"))),
                    (_, None) => {}
                }
                push_tag(&mut out, if inner == "." { "this" } else { tag });
            }
        }
        if open.iter().map(|block| block.depth).sum::<usize>() > MAX_DEPTH {
            return Err(failed(format!("more than {MAX_DEPTH} blocks are in each other")));
        }
    }
    out.push_str(rest);
    Ok((out, cost))
}

/// Returns the first word after `else` in a tag.
fn chained_block(tag: &str) -> Option<&str> {
    let rest = tag.strip_prefix("else")?;
    let is_name = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    rest.split_whitespace().next().filter(|_| !rest.starts_with(is_name))
}

/// Returns the tag that opens a block with a comparison, `#equals a b`, as `#if (eq a b)`.
fn comparison(tag: &str) -> Option<String> {
    let (name, values) = tag.trim().strip_prefix('#')?.trim_start().split_once(char::is_whitespace)?;
    let (_, function) = COMPARISONS.iter().find(|(known, _)| *known == name)?;
    Some(format!("#if ({function} {values})"))
}

fn push_tag(out: &mut String, tag: &str) {
    out.extend(["{{", tag, "}}"]);
}

/// A text of limited length.
struct LimitedOutput(String);

impl Output for LimitedOutput {
    fn write(&mut self, text: &str) -> io::Result<()> {
        if self.0.len() + text.len() > MAX_OUTPUT_BYTES {
            return Err(io::Error::other("the result is too large"));
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// A section of Mustache: a loop over a list, a block with an object, or a condition.
struct Section;

impl HelperDef for Section {
    fn call<'reg: 'rc, 'rc>(
        &self,
        helper: &Helper<'rc>,
        registry: &'reg Handlebars<'reg>,
        context: &'rc Context,
        render: &mut RenderContext<'reg, 'rc>,
        out: &mut dyn Output,
    ) -> HelperResult {
        let Some((value, template)) = helper.param(0).zip(helper.template()) else { return Ok(()) };
        if !value.value().is_truthy(false) {
            return helper.inverse().map_or(Ok(()), |inverse| inverse.render(registry, context, render, out));
        }
        let items = match value.value() {
            Value::Array(items) => (0..items.len()).map(|index| Some(index.to_string())).collect(),
            Value::Bool(_) => return template.render(registry, context, render, out),
            _ => vec![None],
        };
        let Some(path) = value.context_path() else { return Ok(()) };
        for index in items {
            let mut block = BlockContext::new();
            *block.base_path_mut() = path.iter().cloned().chain(index).collect();
            render.push_block(block);
            let result = template.render(registry, context, render, out);
            render.pop_block();
            result?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(text: &str, data: &str) -> Result<String, String> {
        let template = Template { html: Some(text.to_owned()), ..Template::default() };
        render(&template, data, &TextBudget::new(0)).map(|parts| parts.html.unwrap()).map_err(|failure| failure.message)
    }

    #[test]
    fn renders_templates() {
        let data = r#"{"name":"A & B","items":[{"n":1},{"n":2}],"user":{"first":"Ann"},"yes":true,"no":false,"words":["x","y"]}"#;
        let table = [
            ("no tags", "no tags"),
            ("{{name}} {{{name}}} {{missing}}", "A &amp; B A & B "),
            ("{{#each items}}{{n}},{{/each}}", "1,2,"),
            ("{{#items}}{{n}},{{/items}}", "1,2,"),
            ("{{#user}}{{first}}{{/user}} {{#with user}}{{first}}{{/with}} {{user.first}}", "Ann Ann Ann"),
            ("{{#words}}{{.}}{{/words}} {{#each words}}{{this}}{{@index}}{{/each}}", "xy x0y1"),
            (
                "{{#if yes}}a{{else}}b{{/if}}{{#if no}}a{{else if yes}}b{{/if}}{{#yes}}c{{/yes}}{{^no}}d{{/no}}{{#no}}e{{/no}}",
                "abcd",
            ),
            (
                "{{#equals user.first \"Ann\"}}a{{else}}b{{/equals}}{{#notEquals name name}}c{{else}}d{{/notEquals}}",
                "ad",
            ),
            (
                "{{#greaterThan items.1.n 1}}a{{/greaterThan}}{{#lessThan 2 1}}b{{/lessThan}}{{#and yes no}}c{{/and}}",
                "a",
            ),
            (
                "{{#name}}{{.}}{{/name}} {{#words.[0]}}{{this}}{{/words.[0]}}{{#items}}{{#n}}{{.}}{{/n}}{{/items}}",
                "A &amp; B x12",
            ),
            ("{{! comment }}{{!-- {{x}} --}}a", "a"),
            ("{{~name~}} {{#items}}{{#words}}{{.}}{{/words}}{{/items}}", "A &amp; B"),
        ];
        for (text, expected) in table {
            assert_eq!(html(text, data).as_deref(), Ok(expected), "{text}");
        }
        let template = Template { subject: "Hi {{name}}\n".to_owned(), ..Template::default() };
        assert_eq!(render(&template, data, &TextBudget::new(0)).unwrap().subject, "Hi A & B ");
    }

    #[test]
    fn hostile_templates_are_refused() {
        let list = |count: usize| format!("{{\"a\":[{}]}}", vec!["1"; count].join(","));
        let nested =
            |tag: &str, count: usize| format!("{}{}", format!("{{{{#{tag}}}}}").repeat(count), "{{/x}}".repeat(count));
        let table = [
            ("{{> self}}".to_owned(), list(1)),
            ("{{#> self}}{{/self}}".to_owned(), list(1)),
            ("{{#*inline \"self\"}}{{> self}}{{/inline}}".to_owned(), list(1)),
            ("{{* x}}".to_owned(), list(1)),
            ("{{#ifCond a b}}{{/ifCond}}".to_owned(), list(1)),
            ("{{^equals a b}}{{/equals}}".to_owned(), list(1)),
            ("{{#each a}}{{eq @root @root}}{{/each}}".to_owned(), list(10_000)),
            ("{{name".to_owned(), list(1)),
            ("{{/x}}".to_owned(), list(1)),
            ("{{{{raw}}}}{{{{/raw}}}}".to_owned(), list(1)),
            (nested("if a", 1_000), list(1)),
            (nested("a", 1_000), list(1)),
            (format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{else if a}}".repeat(1_000)), list(1)),
            (format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{else\tif a}}".repeat(1_000)), list(1)),
            (format!("{{{{#if a}}}}{}{{{{/if}}}}", "{{~ else\n if a}}".repeat(1_000)), list(1)),
            ("{{#if b}}{{else each a}}{{this}}{{/if}}".to_owned(), list(1)),
            ("{{#if b}}{{else\u{a0}with a}}{{/if}}".to_owned(), list(1)),
            (nested("each @root.a", 5), list(1_000)),
            (format!("{{{{lookup {} 1}}}}", "(".repeat(10_000)), list(1)),
            (format!("{{{{#each a}}}}{}{{{{/each}}}}", "x".repeat(10_000)), list(10_000)),
            (format!("{{{{x {}}}}}", "[".repeat(10_000)), list(1)),
            ("{{x}}".repeat(MAX_TAGS + 1), list(1)),
            ("{{x}}".to_owned(), list(MAX_DATA_BYTES)),
            ("{{x}}".to_owned(), "[".repeat(1_000)),
        ];
        for (text, data) in table {
            let result = html(&text, &data);
            assert!(result.is_err(), "{} was rendered", &text[..text.len().min(80)]);
        }
    }

    #[test]
    fn rendered_texts_are_limited() {
        let template =
            Template { subject: "{{a}}".to_owned(), html: Some("{{a}}{{a}}".to_owned()), ..Template::default() };
        let data = |bytes: usize| format!("{{\"a\":\"{}\"}}", "x".repeat(bytes));
        let budget = TextBudget::new(0);
        let rest = budget.rest();
        assert!(render(&template, &data(100), &budget).is_ok());
        assert_eq!(rest - budget.rest(), 300 + 3 * COST_BYTES);
        budget.take(budget.rest() - 299).unwrap();
        assert_eq!(render(&template, &data(100), &budget).unwrap_err().kind, FailureKind::TooLarge);
        assert!(render(&template, &data(MAX_SUBJECT_BYTES + 1), &TextBudget::new(0)).is_err());
    }

    proptest::proptest! {
        #[test]
        fn rendering_never_panics(text in "(\\{\\{[#/^{&>~]?(a|if a|each a|else|\\.)?\\}?\\}\\}|x|\\{|\\}){0,12}") {
            let _ = html(&text, "{\"a\":[1,{\"a\":2}]}");
        }
    }
}
