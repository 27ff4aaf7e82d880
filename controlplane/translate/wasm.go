// SPDX-License-Identifier: Apache-2.0

package translate

import (
	_ "embed"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	wasmfilterv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/wasm/v3"
	wasmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/wasm/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/weirproxy/weir/envoy"
)

const (
	// vmID names the shared data that holds all buckets. Another name would be other buckets: every limit would start anew.
	vmID = "weir"

	// memoryLimit makes Go's garbage collector work harder before a VM meets the 1 GiB that Envoy gives it, where the VM
	// dies with all that it holds. What is left is for what the collector does not count (the module's own data, pieces
	// that are too small). GOGC stays as it is: what a VM needs lives for one call, so twice the live heap is little, and
	// collecting more often would cost every request.
	memoryLimit = "768MiB"

	// reloadAfter is the least time between two reloads of a VM that has died. A reload costs about 10 ms of its worker;
	// until then the worker answers 503, by default for a second.
	reloadAfter = 100 * time.Millisecond
)

// extension is the filter with the policy as its configuration.
func (t *translator) extension() (*corev3.TypedExtensionConfig, error) {
	filter, err := t.wasm()
	if err != nil {
		return nil, err
	}
	return &corev3.TypedExtensionConfig{Name: FilterName, TypedConfig: filter}, nil
}

// wasm is the filter with the policy.
func (t *translator) wasm() (*anypb.Any, error) {
	return plugin(FilterName, t.Wasm, wrapperspb.String(string(t.Policy)))
}

// attempts is the filter in a cluster. It runs in the same VM as the other one, for all that makes a VM is the same.
func (t *translator) attempts() (*anypb.Any, error) {
	return plugin(AttemptName, t.Wasm, wrapperspb.String(attemptConfig))
}

// attemptConfig is filter.AttemptConfig, which this package must not import.
const attemptConfig = `{"role":"attempt"}`

//go:embed courier/courier.wasm
var courier []byte

// Shares is a node's shares as a resource: the courier's configuration, which it lays where the filter finds it (RATIONALE.md, "Why
// do shares come by a courier?"). Requests never meet it, for its entry in the listener is disabled.
func Shares(document []byte) (*corev3.TypedExtensionConfig, error) {
	configuration, err := envoy.Any(wrapperspb.Bytes(document))
	if err != nil {
		return nil, err
	}
	p, err := envoy.Any(&wasmfilterv3.Wasm{Config: &wasmv3.PluginConfig{
		Name:          SharesName,
		Configuration: configuration,
		Vm: &wasmv3.PluginConfig_VmConfig{VmConfig: &wasmv3.VmConfig{
			VmId:    vmID,
			Runtime: "envoy.wasm.runtime.v8",
			Code: &corev3.AsyncDataSource{Specifier: &corev3.AsyncDataSource_Local{Local: &corev3.DataSource{
				Specifier: &corev3.DataSource_InlineBytes{InlineBytes: courier},
			}}},
		}},
	}})
	if err != nil {
		return nil, err
	}
	return &corev3.TypedExtensionConfig{Name: SharesName, TypedConfig: p}, nil
}

func plugin(name, wasm string, config proto.Message) (*anypb.Any, error) {
	// It goes into the plugin's configuration and not into the VM's: a change then starts a new plugin in the same
	// VM, without compiling and without losing what the VM knows.
	configuration, err := envoy.Any(config)
	if err != nil {
		return nil, err
	}
	return envoy.Any(&wasmfilterv3.Wasm{Config: &wasmv3.PluginConfig{
		Name:          name,
		RootId:        "weir",
		Configuration: configuration,
		Vm:            &wasmv3.PluginConfig_VmConfig{VmConfig: vm(wasm)},
		// The default, to fail closed, is for ever: one crash, and a worker answers 503 until Envoy is started again.
		FailurePolicy: wasmv3.FailurePolicy_FAIL_RELOAD,
		ReloadConfig:  &wasmv3.ReloadConfig{Backoff: &corev3.BackoffStrategy{BaseInterval: durationpb.New(reloadAfter)}},
		// The filter holds the headers until it has read the body.
		AllowOnHeadersStopIteration: wrapperspb.Bool(true),
	}})
}

func vm(wasm string) *wasmv3.VmConfig {
	return &wasmv3.VmConfig{
		VmId:    vmID,
		Runtime: "envoy.wasm.runtime.v8",
		Code: &corev3.AsyncDataSource{Specifier: &corev3.AsyncDataSource_Local{Local: &corev3.DataSource{
			Specifier: &corev3.DataSource_Filename{Filename: wasm},
		}}},
		EnvironmentVariables: &wasmv3.EnvironmentVariables{KeyValues: map[string]string{"GOMEMLIMIT": memoryLimit}},
	}
}
