// Uses the server with go-imap. ../run.py sets the environment variables.
package main

import (
	"bytes"
	"fmt"
	"net"
	"net/smtp"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sort"
	"time"

	"github.com/emersion/go-imap/v2"
	"github.com/emersion/go-imap/v2/imapclient"
	"github.com/emersion/go-sasl"
)

var (
	host     = os.Getenv("IMAP_HOST")
	user     = os.Getenv("IMAP_USER")
	password = os.Getenv("IMAP_PASSWORD")
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func equal(found, expected any) {
	if !reflect.DeepEqual(found, expected) {
		panic(fmt.Sprintf("%v instead of %v", found, expected))
	}
}

func sources() [][]byte {
	names := must(filepath.Glob(os.Getenv("IMAP_SOURCES") + "/*"))
	sort.Strings(names)
	var sources [][]byte
	for _, name := range names {
		sources = append(sources, must(os.ReadFile(name)))
	}
	return sources
}

func connect(handler *imapclient.UnilateralDataHandler) *imapclient.Client {
	address := net.JoinHostPort(host, os.Getenv("IMAP_PORT"))
	return must(imapclient.DialInsecure(address, &imapclient.Options{UnilateralDataHandler: handler}))
}

func main() {
	sources := sources()
	counts := make(chan uint32, 100)
	client := connect(&imapclient.UnilateralDataHandler{Mailbox: func(data *imapclient.UnilateralDataMailbox) {
		if data.NumMessages != nil {
			counts <- *data.NumMessages
		}
	}})
	check(client.Login(user, password).Wait())
	// The client reads names in UTF-8 if the server has IMAP4rev2.
	if client.Caps().Has(imap.CapIMAP4rev2) {
		must(client.Enable(imap.CapIMAP4rev2).Wait())
	}
	caps := must(client.Capability().Wait())
	equal(must(client.Namespace().Wait()).Personal, []imap.NamespaceDescriptor{{Prefix: "", Delim: '/'}})

	// Commands that do not wait for each other.
	list := client.List("", "*", nil)
	selection := client.Select("INBOX", nil)
	status := client.Status("INBOX", &imap.StatusOptions{NumMessages: true, UIDNext: true, UIDValidity: true, NumUnseen: true})
	names := func(data []*imap.ListData) (names []string) {
		for _, entry := range data {
			names = append(names, entry.Mailbox)
		}
		return names
	}
	equal(slices.Contains(names(must(list.Collect())), "INBOX"), true)
	selected := must(selection.Wait())
	counted := must(status.Wait())
	equal([]any{selected.NumMessages, *counted.NumMessages, *counted.NumUnseen}, []any{uint32(5), uint32(5), uint32(5)})
	equal([]any{selected.UIDValidity, selected.UIDNext}, []any{counted.UIDValidity, counted.UIDNext})

	// The messages.
	whole := &imap.FetchItemBodySection{Peek: true}
	header := &imap.FetchItemBodySection{Specifier: imap.PartSpecifierHeader, HeaderFields: []string{"Subject"}, Peek: true}
	slice := &imap.FetchItemBodySection{Peek: true, Partial: &imap.SectionPartial{Offset: 10, Size: 20}}
	all := imap.SeqSet{{Start: 1, Stop: 0}}
	messages := must(client.Fetch(all, &imap.FetchOptions{
		BodyStructure: &imap.FetchItemBodyStructure{Extended: true},
		Envelope:      true, Flags: true, InternalDate: true, RFC822Size: true, UID: true,
		BodySection: []*imap.FetchItemBodySection{whole, header, slice},
	}).Collect())
	equal(len(messages), 5)
	var uids []imap.UID
	for index, message := range messages {
		uids = append(uids, message.UID)
		source := sources[index]
		equal(string(message.FindBodySection(whole)), string(source))
		equal(message.RFC822Size, int64(len(source)))
		equal(string(message.FindBodySection(slice)), string(source[10:30]))
		equal(time.Since(message.InternalDate).Abs() < 24*time.Hour, true)
		equal(slices.Contains(message.Flags, imap.FlagSeen), false)
	}
	first, second, third := messages[0], messages[1], messages[2]
	equal(string(first.FindBodySection(header)), "Subject: Invoice 1001\r\n\r\n")
	equal([]any{first.Envelope.MessageID, first.Envelope.To[1].Addr()}, []any{"1@x.org", "carl@y.org"})
	equal([]any{second.Envelope.Subject, second.Envelope.From[0].Name}, []any{"Grüße aus Köln", "Jörg"})
	equal(third.Envelope.InReplyTo, []string{"1@x.org"})
	var parts []string
	third.BodyStructure.Walk(func(path []int, part imap.BodyStructure) bool {
		parts = append(parts, fmt.Sprint(path, part.MediaType()))
		return true
	})
	equal(parts[:3], []string{"[]multipart/mixed", "[1]multipart/alternative", "[1 1]text/plain"})
	equal(parts[3:5], []string{"[1 2]text/html", "[2]application/octet-stream"})
	children := third.BodyStructure.(*imap.BodyStructureMultiPart).Children
	equal(children[1].(*imap.BodyStructureSinglePart).Filename(), "data.bin")
	nested := children[2].(*imap.BodyStructureSinglePart).MessageRFC822
	equal([]any{nested.Envelope.Subject, len(nested.BodyStructure.(*imap.BodyStructureMultiPart).Children)}, []any{"Nested", 2})

	// Sections, also decoded ones.
	sections := []*imap.FetchItemBodySection{
		{Part: []int{1, 1}},
		{Part: []int{3, 2}},
		{Part: []int{3}, Specifier: imap.PartSpecifierHeader, HeaderFields: []string{"Subject"}},
	}
	message := must(client.Fetch(imap.UIDSetNum(uids[2]), &imap.FetchOptions{BodySection: sections}).Collect())[0]
	for index, expected := range []string{"Caf=C3=A9", "<p>The nested page.</p>", "Subject: Nested\r\n\r\n"} {
		equal(string(message.FindBodySection(sections[index])), expected)
	}
	if caps.Has(imap.CapBinary) {
		binary := &imap.FetchItemBinarySection{Part: []int{2}, Peek: true}
		options := &imap.FetchOptions{BinarySection: []*imap.FetchItemBinarySection{binary}}
		content := must(client.Fetch(imap.UIDSetNum(uids[2]), options).Collect())[0].FindBinarySection(binary)
		equal([]any{len(content), content[31]}, []any{32, byte(31)})
	}

	// Searches.
	yesterday := time.Now().UTC().Add(-24 * time.Hour)
	field := imap.SearchCriteriaHeaderField{Key: "X-Test", Value: "value"}
	from := func(text string) []imap.SearchCriteriaHeaderField {
		return []imap.SearchCriteriaHeaderField{{Key: "From", Value: text}}
	}
	for _, row := range []struct {
		criteria imap.SearchCriteria
		expected []int
	}{
		{imap.SearchCriteria{}, []int{1, 2, 3, 4, 5}},
		{imap.SearchCriteria{NotFlag: []imap.Flag{imap.FlagSeen}}, []int{1, 2, 4, 5}},
		{imap.SearchCriteria{Header: from("Ann Lee")}, []int{1, 3}},
		{imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{{Key: "Subject", Value: "Grüße"}}}, []int{2}},
		{imap.SearchCriteria{Header: []imap.SearchCriteriaHeaderField{field}}, []int{3}},
		{imap.SearchCriteria{Text: []string{"first mail"}}, []int{1}},
		{imap.SearchCriteria{Body: []string{"Käse"}}, []int{2}},
		{imap.SearchCriteria{Since: yesterday}, []int{1, 2, 3, 4, 5}},
		{imap.SearchCriteria{Before: yesterday}, nil},
		{imap.SearchCriteria{Larger: 100_000}, []int{4}},
		{imap.SearchCriteria{Not: []imap.SearchCriteria{{Header: from("ann")}}}, []int{2}},
		{imap.SearchCriteria{Or: [][2]imap.SearchCriteria{{{Text: []string{"dora"}}, {Larger: 100_000}}}}, []int{1, 4}},
	} {
		var expected []imap.UID
		for _, number := range row.expected {
			expected = append(expected, uids[number-1])
		}
		equal(must(client.UIDSearch(&row.criteria, nil).Wait()).AllUIDs(), expected)
	}
	if caps.Has(imap.CapESearch) {
		options := &imap.SearchOptions{ReturnMin: true, ReturnMax: true, ReturnCount: true}
		found := must(client.UIDSearch(&imap.SearchCriteria{}, options).Wait())
		equal([]any{found.Min, found.Max, found.Count}, []any{uint32(uids[0]), uint32(uids[4]), uint32(5)})
	}
	if caps.Has(imap.CapSort) {
		keys := []imapclient.SortCriterion{{Key: imapclient.SortKeySubject}}
		options := &imapclient.SortOptions{SearchCriteria: &imap.SearchCriteria{}, SortCriteria: keys}
		equal(must(client.Sort(options).Wait()), []uint32{5, 2, 1, 4, 3})
	}
	if caps.Has("THREAD=REFERENCES") {
		options := &imapclient.ThreadOptions{Algorithm: imap.ThreadReferences, SearchCriteria: &imap.SearchCriteria{}}
		equal(must(client.Thread(options).Wait())[0].Chain, []uint32{1, 3})
	}

	// Flags and keywords.
	store := func(uid imap.UID, op imap.StoreFlagsOp, flags ...imap.Flag) {
		check(client.Store(imap.UIDSetNum(uid), &imap.StoreFlags{Op: op, Flags: flags, Silent: true}, nil).Close())
	}
	store(uids[0], imap.StoreFlagsAdd, imap.FlagFlagged, imap.FlagForwarded, "work")
	store(uids[0], imap.StoreFlagsDel, "work")
	store(uids[1], imap.StoreFlagsSet, imap.FlagSeen, imap.FlagAnswered)
	flags := func(set imap.NumSet) (flags [][]string) {
		for _, message := range must(client.Fetch(set, &imap.FetchOptions{Flags: true}).Collect()) {
			var names []string
			for _, flag := range message.Flags {
				if flag != `\Recent` {
					names = append(names, string(flag))
				}
			}
			sort.Strings(names)
			flags = append(flags, names)
		}
		return flags
	}
	expectedFlags := [][]string{{"$Forwarded", `\Flagged`}, {`\Answered`, `\Seen`}}
	equal(flags(imap.SeqSetNum(1, 2)), expectedFlags)

	// Folders.
	const path = "Archiv/Entwürfe & mehr"
	for _, name := range []string{"Archiv", path} {
		check(client.Create(name, nil).Wait())
		check(client.Subscribe(name).Wait())
	}
	equal(client.Create(path, nil).Wait() != nil, true)
	if caps.Has(imap.CapListExtended) {
		equal(slices.Contains(names(must(client.List("", "*", &imap.ListOptions{SelectSubscribed: true}).Collect())), path), true)
	}
	check(client.Unsubscribe(path).Wait())
	check(client.Rename(path, "Archiv/2024", nil).Wait())
	equal(names(must(client.List("", "Archiv/%", nil).Collect())), []string{"Archiv/2024"})

	// APPEND, COPY, MOVE, EXPUNGE.
	appended := []byte("Subject: Appended\r\n\r\n\xe4 \xff\r\n")
	date := time.Date(2020, 12, 13, 13, 36, 36, 0, time.FixedZone("", 8*3600))
	command := client.Append("Archiv/2024", int64(len(appended)), &imap.AppendOptions{Flags: []imap.Flag{imap.FlagDraft}, Time: date})
	must(command.Write(appended))
	check(command.Close())
	data := must(command.Wait())
	copied := must(client.Copy(imap.SeqSetNum(1, 2), "Archiv/2024").Wait())
	equal(copied.SourceUIDs.String(), imap.UIDSetNum(uids[:2]...).String())
	moved := must(client.Move(imap.UIDSetNum(uids[2]), "Archiv/2024").Wait())
	equal(moved.SourceUIDs, imap.NumSet(imap.UIDSetNum(uids[2])))
	store(uids[4], imap.StoreFlagsAdd, imap.FlagDeleted)
	store(uids[3], imap.StoreFlagsAdd, imap.FlagDeleted)
	equal(must(client.UIDExpunge(imap.UIDSetNum(uids[4])).Collect()), []uint32{4})
	equal(must(client.UIDSearch(&imap.SearchCriteria{}, nil).Wait()).AllUIDs(), []imap.UID{uids[0], uids[1], uids[3]})
	check(client.Unselect().Wait())
	equal(must(client.Select("Archiv/2024", &imap.SelectOptions{ReadOnly: true}).Wait()).NumMessages, uint32(4))
	options := &imap.FetchOptions{UID: true, InternalDate: true, BodySection: []*imap.FetchItemBodySection{whole}}
	copies := must(client.Fetch(all, options).Collect())
	equal([]any{copies[0].UID, copies[0].InternalDate.Equal(date)}, []any{data.UID, true})
	for index, content := range append([][]byte{appended}, sources[:3]...) {
		equal(bytes.Equal(copies[index].FindBodySection(whole), content), true)
	}
	equal(flags(imap.SeqSetNum(2, 3)), expectedFlags)
	if caps.Has(imap.CapQuota) {
		must(client.GetQuotaRoot("INBOX").Wait())
	}
	if caps.Has(imap.CapListStatus) {
		options := &imap.ListOptions{ReturnStatus: &imap.StatusOptions{NumMessages: true}}
		listed := must(client.List("", "Archiv/*", options).Collect())
		equal(*listed[0].Status.NumMessages, uint32(4))
	}

	// IDLE with a message that arrives.
	must(client.Select("INBOX", nil).Wait())
	for len(counts) > 0 {
		<-counts
	}
	idle := must(client.Idle())
	mail := "From: ann@x.org\r\nSubject: Idle\r\n\r\nHi\r\n"
	address := net.JoinHostPort(host, os.Getenv("SMTP_PORT"))
	check(smtp.SendMail(address, nil, "ann@x.org", []string{user + "@example.org"}, []byte(mail)))
	select {
	case count := <-counts:
		equal(count, uint32(4))
	case <-time.After(20 * time.Second):
		panic("the message is not reported")
	}
	check(idle.Close())
	check(idle.Wait())
	check(client.Noop().Wait())
	last := must(client.Fetch(imap.SeqSetNum(4), &imap.FetchOptions{Envelope: true}).Collect())
	equal(last[0].Envelope.Subject, "Idle")

	for _, name := range []string{"Archiv/2024", "Archiv"} {
		check(client.Delete(name).Wait())
	}
	equal(names(must(client.List("", "Archiv*", nil).Collect())), []string(nil))
	check(client.Logout().Wait())

	// Other logins.
	for _, mechanism := range []sasl.Client{
		sasl.NewPlainClient("", user, password),
		sasl.NewOAuthBearerClient(&sasl.OAuthBearerOptions{Username: user, Token: os.Getenv("IMAP_TOKEN"), Host: host}),
	} {
		client := connect(nil)
		check(client.Authenticate(mechanism))
		equal(must(client.Select("INBOX", &imap.SelectOptions{ReadOnly: true}).Wait()).NumMessages, uint32(4))
		check(client.Logout().Wait())
	}
}
