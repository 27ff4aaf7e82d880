;; SPDX-License-Identifier: Apache-2.0
;;
;; What brings shares to the filter: it lays its configuration into the shared data of its vm_id, under "fd", and then says so under
;; "fv", whose number Envoy changes with each setting. RATIONALE.md, "Why do shares come by a courier?".
;; courier.wasm is made of this by Binaryen: wasm-as courier.wat -o courier.wasm
(module
  (import "env" "proxy_get_buffer_bytes" (func $get (param i32 i32 i32 i32 i32) (result i32)))
  (import "env" "proxy_set_shared_data" (func $set (param i32 i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 16) "fdfv")

  (func (export "proxy_abi_version_0_2_0"))

  ;; There is one allocation: the configuration, behind the first page.
  (func (export "proxy_on_memory_allocate") (param $size i32) (result i32)
    (local $lacking i32)
    (local.set $lacking (i32.sub
      (i32.add (i32.shr_u (i32.add (local.get $size) (i32.const 65535)) (i32.const 16)) (i32.const 1))
      (memory.size)))
    (if (i32.gt_s (local.get $lacking) (i32.const 0))
      (then (drop (memory.grow (local.get $lacking)))))
    (i32.const 65536))

  (func (export "proxy_on_configure") (param $id i32) (param $size i32) (result i32)
    (if (call $get (i32.const 7) (i32.const 0) (local.get $size) (i32.const 0) (i32.const 4))
      (then (return (i32.const 0))))
    (if (call $set (i32.const 16) (i32.const 2) (i32.load (i32.const 0)) (i32.load (i32.const 4)) (i32.const 0))
      (then (return (i32.const 0))))
    (i32.eqz (call $set (i32.const 18) (i32.const 2) (i32.const 16) (i32.const 1) (i32.const 0)))))
