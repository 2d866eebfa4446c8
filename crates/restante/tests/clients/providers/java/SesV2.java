import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import software.amazon.awssdk.auth.credentials.AwsBasicCredentials;
import software.amazon.awssdk.auth.credentials.StaticCredentialsProvider;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.http.urlconnection.UrlConnectionHttpClient;
import software.amazon.awssdk.protocols.jsoncore.JsonNode;
import software.amazon.awssdk.regions.Region;
import software.amazon.awssdk.services.sesv2.SesV2Client;
import software.amazon.awssdk.services.sesv2.model.Attachment;
import software.amazon.awssdk.services.sesv2.model.AttachmentContentDisposition;
import software.amazon.awssdk.services.sesv2.model.BadRequestException;
import software.amazon.awssdk.services.sesv2.model.Body;
import software.amazon.awssdk.services.sesv2.model.BulkEmailEntry;
import software.amazon.awssdk.services.sesv2.model.BulkEmailStatus;
import software.amazon.awssdk.services.sesv2.model.Content;
import software.amazon.awssdk.services.sesv2.model.Destination;
import software.amazon.awssdk.services.sesv2.model.EmailTemplateContent;
import software.amazon.awssdk.services.sesv2.model.Message;
import software.amazon.awssdk.services.sesv2.model.Template;

/**
 * Sends the messages with Maven software.amazon.awssdk:sesv2 and checks what it returns. PROVIDERS_URL is the address of the server.
 */
public class SesV2 {
    private static final SesV2Client client = SesV2Client.builder()
        .endpointOverride(URI.create(System.getenv("PROVIDERS_URL")))
        .region(Region.EU_CENTRAL_1)
        .credentialsProvider(StaticCredentialsProvider.create(AwsBasicCredentials.create("key", "secret")))
        .httpClient(UrlConnectionHttpClient.create())
        .build();

    private static void check(boolean isRight, Object value) {
        if (!isRight) throw new AssertionError(value);
    }

    /** Returns the form `Bob Example <bob@example.test>`. */
    private static String format(JsonNode person) {
        String name = text(person, "name");
        String address = text(person, "address");
        if (name.isEmpty()) return address;
        boolean isPlain = name.codePoints().allMatch((character) -> character == ' ' || Character.isLetter(character));
        return (isPlain ? name : "\"" + name + "\"") + " <" + address + ">";
    }

    private static String text(JsonNode node, String member) {
        return node.field(member).orElseThrow().asString();
    }

    private static List<String> people(JsonNode message, String member) {
        return message.field(member).orElseThrow().asArray().stream().map(SesV2::format).toList();
    }

    private static String sender(JsonNode message) {
        return format(message.field("from").orElseThrow());
    }

    private static Destination destination(JsonNode message) {
        return Destination.builder()
            .toAddresses(people(message, "to")).ccAddresses(people(message, "cc")).bccAddresses(people(message, "bcc")).build();
    }

    private static Content content(JsonNode message, String member) {
        return Content.builder().data(text(message, member)).charset("UTF-8").build();
    }

    private static Attachment attachment(JsonNode file) {
        byte[] bytes = java.util.Base64.getDecoder().decode(text(file, "content"));
        Attachment.Builder attachment = Attachment.builder()
            .rawContent(SdkBytes.fromByteArray(bytes)).fileName(text(file, "filename")).contentType(text(file, "type"));
        file.field("cid").ifPresent((cid) ->
            attachment.contentId(cid.asString()).contentDisposition(AttachmentContentDisposition.INLINE));
        return attachment.build();
    }

    private static void send(JsonNode message) {
        Message simple = Message.builder()
            .subject(content(message, "subject"))
            .body(Body.builder().text(content(message, "text")).html(content(message, "html")).build())
            .attachments(message.field("attachments").orElseThrow().asArray().stream().map(SesV2::attachment).toList())
            .build();
        String id = client.sendEmail((request) -> request
            .fromEmailAddress(sender(message)).replyToAddresses(people(message, "reply-to"))
            .destination(destination(message)).content((content) -> content.simple(simple))).messageId();
        check(id != null && !id.isEmpty(), id);
    }

    private static void sendBatch(List<JsonNode> messages) {
        JsonNode first = messages.get(0);
        EmailTemplateContent content = EmailTemplateContent.builder()
            .subject(text(first, "subject")).text(text(first, "text")).html(text(first, "html")).build();
        var entries = messages.stream()
            .map((message) -> BulkEmailEntry.builder().destination(destination(message)).build()).toList();
        Template template = Template.builder().templateContent(content).templateData("{}").build();
        var results = client.sendBulkEmail((request) -> request
            .fromEmailAddress(sender(first)).defaultContent((defaults) -> defaults.template(template))
            .bulkEmailEntries(entries)).bulkEmailEntryResults();
        check(results.size() == messages.size(), results);
        results.forEach((result) -> check(result.status() == BulkEmailStatus.SUCCESS && result.messageId() != null, result));
    }

    private static void sendInvalid(JsonNode message) {
        try {
            send(message);
        } catch (BadRequestException error) {
            check(error.statusCode() == 400 && error.requestId() != null, error);
            check(!error.awsErrorDetails().errorMessage().isEmpty(), error.awsErrorDetails());
            return;
        }
        throw new AssertionError("succeeded");
    }

    public static void main(String[] arguments) throws Exception {
        String text = Files.readString(Path.of("../messages.json")).replace("SDK", "java-sesv2");
        Map<String, JsonNode> messages = new HashMap<>();
        JsonNode.parser().parse(text).asArray().forEach((message) -> messages.put(text(message, "name"), message));
        for (String name : List.of("basic", "attachment", "inline", "many", "unicode")) send(messages.get(name));
        sendBatch(List.of(messages.get("batch-1"), messages.get("batch-2"), messages.get("batch-3")));
        sendInvalid(messages.get("invalid"));
    }
}
