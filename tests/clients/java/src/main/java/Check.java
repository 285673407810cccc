import com.google.protobuf.ByteString;
import com.google.protobuf.DescriptorProtos.FileDescriptorProto;
import com.google.protobuf.DescriptorProtos.FileDescriptorSet;
import com.google.protobuf.Descriptors.Descriptor;
import com.google.protobuf.Descriptors.FieldDescriptor;
import com.google.protobuf.Descriptors.FileDescriptor;
import com.google.protobuf.DynamicMessage;
import com.google.rpc.ErrorInfo;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptors;
import io.grpc.ManagedChannel;
import io.grpc.ManagedChannelBuilder;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.protobuf.StatusProto;
import io.grpc.stub.ClientCalls;
import io.grpc.stub.MetadataUtils;
import io.grpc.stub.StreamObserver;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Iterator;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/**
 * grpc-java against the daemon: ADDRESS SESSION DESCRIPTORS. The cases bear the names of gRPC's
 * interop tests. Messages are made from the descriptors, which protoc writes from the .proto files.
 */
public final class Check {
  private static final int LARGE = 63 << 20;
  private static final String SERVICE = "tribo.v1.Simulation";

  private final FileDescriptor file;
  private final ManagedChannel channel;
  private final String session;
  private int passed;
  private int failed;

  private Check(FileDescriptor file, ManagedChannel channel, String session) {
    this.file = file;
    this.channel = channel;
    this.session = session;
  }

  // ---- messages and methods ----

  private static FileDescriptor build(
      String name, Map<String, FileDescriptorProto> all, Map<String, FileDescriptor> done)
      throws Exception {
    if (done.containsKey(name)) {
      return done.get(name);
    }
    FileDescriptorProto proto = all.get(name);
    FileDescriptor[] needed = new FileDescriptor[proto.getDependencyCount()];
    for (int i = 0; i < needed.length; i++) {
      needed[i] = build(proto.getDependency(i), all, done);
    }
    done.put(name, FileDescriptor.buildFrom(proto, needed));
    return done.get(name);
  }

  private DynamicMessage message(String type, Object... fields) {
    Descriptor descriptor = file.findMessageTypeByName(type);
    DynamicMessage.Builder builder = DynamicMessage.newBuilder(descriptor);
    for (int i = 0; i < fields.length; i += 2) {
      builder.setField(descriptor.findFieldByName((String) fields[i]), fields[i + 1]);
    }
    return builder.build();
  }

  private static Object field(DynamicMessage message, String name) {
    FieldDescriptor descriptor = message.getDescriptorForType().findFieldByName(name);
    return message.getField(descriptor);
  }

  private MethodDescriptor<DynamicMessage, DynamicMessage> method(String name, MethodType type) {
    return method(SERVICE, name, name, type);
  }

  private MethodDescriptor<DynamicMessage, DynamicMessage> method(
      String service, String name, String messages, MethodType type) {
    return MethodDescriptor.<DynamicMessage, DynamicMessage>newBuilder()
        .setType(type)
        .setFullMethodName(MethodDescriptor.generateFullMethodName(service, name))
        .setRequestMarshaller(ProtoUtils.marshaller(message(messages + "Request")))
        .setResponseMarshaller(ProtoUtils.marshaller(message(messages + "Response")))
        .build();
  }

  private DynamicMessage unary(Channel over, String name, CallOptions options, Object... fields) {
    return ClientCalls.blockingUnaryCall(
        over,
        method(name, MethodType.UNARY),
        options.withDeadlineAfter(60, TimeUnit.SECONDS),
        message(name + "Request", fields));
  }

  /** Content of a stream: messages, and at its end a Status. */
  private static final class Answers implements StreamObserver<DynamicMessage> {
    final LinkedBlockingQueue<Object> queue = new LinkedBlockingQueue<>();

    @Override
    public void onNext(DynamicMessage message) {
      queue.add(message);
    }

    @Override
    public void onError(Throwable error) {
      queue.add(Status.fromThrowable(error));
    }

    @Override
    public void onCompleted() {
      queue.add(Status.OK);
    }

    Object next() throws InterruptedException {
      Object found = queue.poll(60, TimeUnit.SECONDS);
      return found != null ? found : Status.UNKNOWN.withDescription("nothing came for a minute");
    }
  }

  // ---- checks ----

  private void check(boolean good, String what, Object... values) {
    if (good) {
      passed++;
      return;
    }
    failed++;
    System.out.println("FAILED: " + what + " " + java.util.Arrays.toString(values));
  }

  private void code(Runnable call, Status.Code wanted, String what) {
    Status status = Status.OK;
    try {
      call.run();
    } catch (StatusRuntimeException error) {
      status = error.getStatus();
    }
    check(status.getCode() == wanted, what, status);
  }

  private Object put(String name, CallOptions options, int... sizes) throws InterruptedException {
    ClientCall<DynamicMessage, DynamicMessage> call =
        channel.newCall(
            method("PutAsset", MethodType.CLIENT_STREAMING),
            options.withDeadlineAfter(60, TimeUnit.SECONDS));
    Answers answers = new Answers();
    StreamObserver<DynamicMessage> requests = ClientCalls.asyncClientStreamingCall(call, answers);
    call.setMessageCompression(options.getCompressor() != null);
    for (int i = 0; i < sizes.length; i++) {
      ByteString data = ByteString.copyFrom(new byte[sizes[i]]);
      requests.onNext(
          i == 0
              ? message("PutAssetRequest", "data", data, "name", name)
              : message("PutAssetRequest", "data", data));
    }
    requests.onCompleted();
    Object first = answers.next();
    return first instanceof DynamicMessage answer ? field(answer, "size") : first;
  }

  private void unaryCases() throws InterruptedException {
    Metadata more = new Metadata();
    more.put(
        Metadata.Key.of("x-grpc-test-echo-initial", Metadata.ASCII_STRING_MARSHALLER),
        "test_initial");
    more.put(
        Metadata.Key.of("x-grpc-test-bin", Metadata.BINARY_BYTE_MARSHALLER),
        new byte[] {(byte) 0xab, (byte) 0xab, 0});
    Channel over =
        ClientInterceptors.intercept(channel, MetadataUtils.newAttachHeadersInterceptor(more));
    CallOptions plain = CallOptions.DEFAULT;
    CallOptions gzip = plain.withCompression("gzip");
    Object version = field(unary(over, "GetServerInfo", plain), "version");
    check(!"".equals(version), "empty_unary, custom_metadata", version);
    version = field(unary(over, "GetServerInfo", gzip), "version");
    check(!"".equals(version), "server_compressed_unary", version);
    Object size = put("large", plain, LARGE);
    check(Long.valueOf(LARGE).equals(size), "large_unary", size);
    Object refused = put("beyond", plain, 65 << 20);
    check(
        refused instanceof Status status && status.getCode() == Status.Code.RESOURCE_EXHAUSTED,
        "a message beyond the limit",
        refused);
    size = put("zip", gzip, 1 << 20, 1);
    check(Long.valueOf((1 << 20) + 1).equals(size), "client_compressed_streaming", size);
  }

  private void failures() throws Exception {
    CallOptions plain = CallOptions.DEFAULT;
    try {
      unary(channel, "GetState", plain, "session_id", "0".repeat(32));
      check(false, "status_code_and_message", "no error");
    } catch (StatusRuntimeException error) {
      Status status = error.getStatus();
      check(status.getCode() == Status.Code.NOT_FOUND, "status_code_and_message", status);
      check(status.getDescription().contains("0000"), "the message of an error", status);
      com.google.rpc.Status details = StatusProto.fromThrowable(error);
      String reason = "";
      for (com.google.protobuf.Any detail : details.getDetailsList()) {
        if (detail.is(ErrorInfo.class)) {
          reason = detail.unpack(ErrorInfo.class).getReason();
        }
      }
      check(!reason.isEmpty(), "details of an error", details);
    }
    try {
      unary(channel, "CreateScene", plain, "text", "<mujoco><\u00fc/></mujoco>");
      check(false, "special_status_message", "no error");
    } catch (StatusRuntimeException error) {
      String told = error.getStatus().getDescription();
      check(told.contains("\u00fc"), "special_status_message", told);
    }
    Map<String, MethodDescriptor<DynamicMessage, DynamicMessage>> nowhere = new HashMap<>();
    nowhere.put(
        "unimplemented_method", method(SERVICE, "Nothing", "GetServerInfo", MethodType.UNARY));
    nowhere.put(
        "unimplemented_service",
        method("tribo.v1.Nothing", "Nothing", "GetServerInfo", MethodType.UNARY));
    for (var one : nowhere.entrySet()) {
      DynamicMessage request = message("GetServerInfoRequest");
      CallOptions options = plain.withDeadlineAfter(20, TimeUnit.SECONDS);
      code(
          () -> ClientCalls.blockingUnaryCall(channel, one.getValue(), options, request),
          Status.Code.UNIMPLEMENTED,
          one.getKey());
    }
    Answers answers = new Answers();
    ClientCall<DynamicMessage, DynamicMessage> call =
        channel.newCall(method("PutAsset", MethodType.CLIENT_STREAMING), plain);
    ClientCalls.asyncClientStreamingCall(call, answers);
    call.cancel("enough", null);
    check(isCode(answers.next(), Status.Code.CANCELLED), "cancel_after_begin");
  }

  private static boolean isCode(Object found, Status.Code code) {
    return found instanceof Status status && status.getCode() == code;
  }

  /** A stream of steps: requests go in by `requests`, answers come out of `answers`. */
  private final class Steps {
    final Answers answers = new Answers();
    final ClientCall<DynamicMessage, DynamicMessage> call =
        channel.newCall(method("StepStream", MethodType.BIDI_STREAMING), CallOptions.DEFAULT);
    final StreamObserver<DynamicMessage> requests =
        ClientCalls.asyncBidiStreamingCall(call, answers);

    /** Sends `count` steps in lock-step; returns the number of tags received in order. */
    int play(int count) throws InterruptedException {
      DynamicMessage step = message("StepRequest", "session_id", session, "steps", 1);
      for (int tag = 0; tag < count; tag++) {
        requests.onNext(message("StepStreamRequest", "step", step, "tag", (long) tag));
        if (!(answers.next() instanceof DynamicMessage answer)
            || !Long.valueOf(tag).equals(field(answer, "tag"))) {
          return tag;
        }
      }
      return count;
    }
  }

  private Iterator<DynamicMessage> watch(double seconds) {
    CallOptions options =
        CallOptions.DEFAULT.withDeadlineAfter((long) (1e3 * seconds), TimeUnit.MILLISECONDS);
    return ClientCalls.blockingServerStreamingCall(
        channel,
        method("Watch", MethodType.SERVER_STREAMING),
        options,
        message("WatchRequest", "session_id", session));
  }

  private void streams() throws InterruptedException {
    Steps steps = new Steps();
    int count = steps.play(500);
    check(count == 500, "ping_pong", count);
    steps.requests.onCompleted();
    Object end = steps.answers.next();
    check(isCode(end, Status.Code.OK), "the end of a stream", end);

    steps = new Steps();
    steps.requests.onCompleted();
    end = steps.answers.next();
    check(isCode(end, Status.Code.OK), "empty_stream", end);

    steps = new Steps();
    check(steps.play(1) == 1, "a first response");
    steps.call.cancel("enough", null);
    end = steps.answers.next();
    check(isCode(end, Status.Code.CANCELLED), "cancel_after_first_response", end);

    Iterator<DynamicMessage> brief = watch(0.3);
    code(
        () -> {
          while (brief.hasNext()) {
            brief.next();
          }
        },
        Status.Code.DEADLINE_EXCEEDED,
        "timeout_on_sleeping_server");

    Iterator<DynamicMessage> watched = watch(60);
    check(watched.hasNext(), "server_streaming");
  }

  public static void main(String[] arguments) throws Exception {
    Map<String, FileDescriptorProto> all = new HashMap<>();
    byte[] bytes = Files.readAllBytes(Path.of(arguments[2]));
    for (FileDescriptorProto proto : FileDescriptorSet.parseFrom(bytes).getFileList()) {
      all.put(proto.getName(), proto);
    }
    FileDescriptor file = build("tribo/v1/simulation.proto", all, new HashMap<>());
    ManagedChannel channel =
        ManagedChannelBuilder.forTarget(arguments[0])
            .usePlaintext()
            .maxInboundMessageSize(1 << 30)
            .build();
    Check check = new Check(file, channel, arguments[1]);
    check.unaryCases();
    check.failures();
    check.streams();
    channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
    System.out.printf("%d passed, %d failed, 0 skipped%n", check.passed, check.failed);
    System.exit(check.failed > 0 ? 1 : 0);
  }
}
