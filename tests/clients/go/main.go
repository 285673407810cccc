// grpc-go against the daemon: ADDRESS SESSION. The cases bear the names of gRPC's interop tests.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding/gzip"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"

	pb "tribo.example/check/pb"
)

const large = 63 << 20

var passed, failed int

func check(good bool, what string, values ...any) {
	if good {
		passed++
		return
	}
	failed++
	fmt.Println("FAILED:", what, values)
}

func code(err error, wanted codes.Code, what string) {
	check(status.Code(err) == wanted, what, err)
}

func seconds(s float64) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Duration(s*float64(time.Second)))
}

func put(stub pb.SimulationClient, name string, sizes []int, options ...grpc.CallOption) (uint64, error) {
	ctx, cancel := seconds(60)
	defer cancel()
	stream, err := stub.PutAsset(ctx, options...)
	if err != nil {
		return 0, err
	}
	for i, size := range sizes {
		request := &pb.PutAssetRequest{Data: make([]byte, size)}
		if i == 0 {
			request.Name = name
		}
		if stream.Send(request) != nil {
			break // the status says why
		}
	}
	answer, err := stream.CloseAndRecv()
	return answer.GetSize(), err
}

func unary(stub pb.SimulationClient) {
	ctx, cancel := seconds(60)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "x-grpc-test-echo-initial", "test_initial",
		"x-grpc-test-bin", "\xab\xab\x00")
	info, err := stub.GetServerInfo(ctx, &pb.GetServerInfoRequest{})
	check(err == nil && info.Version != "", "empty_unary, custom_metadata", err)
	info, err = stub.GetServerInfo(ctx, &pb.GetServerInfoRequest{}, grpc.UseCompressor(gzip.Name))
	check(err == nil && info.Version != "", "server_compressed_unary", err)
	size, err := put(stub, "large", []int{large})
	check(size == large, "large_unary", err)
	_, err = put(stub, "beyond", []int{65 << 20})
	code(err, codes.ResourceExhausted, "a message beyond the limit")
	size, err = put(stub, "zip", []int{1 << 20, 1}, grpc.UseCompressor(gzip.Name))
	check(size == 1<<20+1, "client_compressed_streaming", err)
}

func failures(stub pb.SimulationClient, connection *grpc.ClientConn) {
	ctx, cancel := seconds(20)
	defer cancel()
	_, err := stub.GetState(ctx, &pb.GetStateRequest{SessionId: strings.Repeat("0", 32)})
	code(err, codes.NotFound, "status_code_and_message")
	check(strings.Contains(status.Convert(err).Message(), "0000"), "the message of an error", err)
	reason := ""
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok {
			reason = info.Reason
		}
	}
	check(reason != "", "details of an error", status.Convert(err).Details())
	_, err = stub.CreateScene(ctx, &pb.CreateSceneRequest{
		Main: &pb.CreateSceneRequest_Text{Text: "<mujoco><ü/></mujoco>"}})
	check(strings.Contains(status.Convert(err).Message(), "ü"), "special_status_message", err)
	for method, what := range map[string]string{
		"/tribo.v1.Simulation/Nothing": "unimplemented_method",
		"/tribo.v1.Nothing/Nothing":    "unimplemented_service"} {
		err = connection.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
		code(err, codes.Unimplemented, what)
	}
	gone, end := context.WithCancel(context.Background())
	stream, err := stub.PutAsset(gone)
	check(err == nil, "a stream begins", err)
	end()
	_, err = stream.CloseAndRecv()
	code(err, codes.Canceled, "cancel_after_begin")
}

// play sends `count` steps in lock-step, and gives how many tags came back in order.
func play(stream pb.Simulation_StepStreamClient, session string, count uint64) (uint64, error) {
	for tag := uint64(0); tag < count; tag++ {
		request := &pb.StepStreamRequest{Step: &pb.StepRequest{SessionId: session, Steps: 1}, Tag: tag}
		if err := stream.Send(request); err != nil {
			return tag, err
		}
		answer, err := stream.Recv()
		if err != nil || answer.Tag != tag {
			return tag, err
		}
	}
	return count, nil
}

func streams(stub pb.SimulationClient, session string) {
	ctx, cancel := seconds(60)
	defer cancel()
	stream, err := stub.StepStream(ctx)
	check(err == nil, "a stream begins", err)
	count, err := play(stream, session, 500)
	check(count == 500, "ping_pong", count, err)
	stream.CloseSend()
	_, err = stream.Recv()
	check(err == io.EOF, "the end of a stream", err)

	stream, _ = stub.StepStream(ctx)
	stream.CloseSend()
	_, err = stream.Recv()
	check(err == io.EOF, "empty_stream", err)

	gone, end := context.WithCancel(ctx)
	stream, _ = stub.StepStream(gone)
	_, err = play(stream, session, 1)
	check(err == nil, "a first response", err)
	end()
	_, err = stream.Recv()
	code(err, codes.Canceled, "cancel_after_first_response")

	brief, over := seconds(0.3)
	defer over()
	watch, _ := stub.Watch(brief, &pb.WatchRequest{SessionId: session})
	for err = nil; err == nil; {
		_, err = watch.Recv()
	}
	code(err, codes.DeadlineExceeded, "timeout_on_sleeping_server")

	watch, _ = stub.Watch(ctx, &pb.WatchRequest{SessionId: session})
	stream, _ = stub.StepStream(ctx)
	play(stream, session, 20)
	state, err := watch.Recv()
	check(err == nil && state != nil, "server_streaming", err)
}

func main() {
	connection, err := grpc.NewClient(os.Args[1],
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(1<<30)))
	if err != nil {
		panic(err)
	}
	defer connection.Close()
	stub := pb.NewSimulationClient(connection)
	unary(stub)
	failures(stub, connection)
	streams(stub, os.Args[2])
	fmt.Printf("%d passed, %d failed, 0 skipped\n", passed, failed)
	if failed > 0 {
		os.Exit(1)
	}
}
