// SPDX-License-Identifier: Apache-2.0

package translate

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// The courier lays the whole configuration into shared data, whatever its size, and only then says so.
func TestCourierLaysDown(t *testing.T) {
	ctx := context.Background()
	runtime := wazero.NewRuntime(ctx)
	defer runtime.Close(ctx)
	var config []byte
	var calls []string
	laid, refuse := map[string][]byte{}, ""
	get := func(ctx context.Context, m api.Module, which, start, most, at, size uint32) uint32 {
		const pluginConfiguration = 7
		if which != pluginConfiguration || start != 0 || int(most) < len(config) || refuse == "get" {
			return 1
		}
		to, err := m.ExportedFunction("proxy_on_memory_allocate").Call(ctx, uint64(len(config)))
		if err != nil {
			t.Fatal(err)
		}
		ok := m.Memory().Write(uint32(to[0]), config) && m.Memory().WriteUint32Le(at, uint32(to[0])) && m.Memory().WriteUint32Le(size, uint32(len(config)))
		if !ok {
			t.Fatal("no room")
		}
		return 0
	}
	set := func(_ context.Context, m api.Module, key, keySize, value, size, cas uint32) uint32 {
		k, _ := m.Memory().Read(key, keySize)
		v, ok := m.Memory().Read(value, size)
		if !ok || cas != 0 || refuse == string(k) {
			return 1
		}
		calls, laid[string(k)] = append(calls, string(k)), bytes.Clone(v)
		return 0
	}
	if _, err := runtime.NewHostModuleBuilder("env").NewFunctionBuilder().WithFunc(get).Export("proxy_get_buffer_bytes").
		NewFunctionBuilder().WithFunc(set).Export("proxy_set_shared_data").Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := runtime.Instantiate(ctx, courier)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 100_000, 65_536, 4 << 20, 3} {
		config, calls = bytes.Repeat([]byte{byte(size), 7}, size/2+1)[:size], nil
		ok, err := m.ExportedFunction("proxy_on_configure").Call(ctx, 2, uint64(size))
		if err != nil || ok[0] != 1 || fmt.Sprint(calls) != "[fd fv]" || !bytes.Equal(laid["fd"], config) || len(laid["fv"]) == 0 {
			t.Fatalf("%d bytes: %v, %v, %v, %d laid down", size, ok, err, calls, len(laid["fd"]))
		}
	}
	for _, refuse = range []string{"get", "fd", "fv"} {
		if ok, err := m.ExportedFunction("proxy_on_configure").Call(ctx, 2, 3); err != nil || ok[0] != 0 {
			t.Errorf("without %s it says %v, %v", refuse, ok, err)
		}
	}
	if m.ExportedFunction("proxy_abi_version_0_2_0") == nil {
		t.Error("Envoy would not take it")
	}
}
