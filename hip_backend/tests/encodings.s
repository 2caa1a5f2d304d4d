; Words of others' tests, for tools/check-gfx950.py: does this project's reading of an encoding find what they say is in it?
; rocjitsu (ROCm/rocm-systems), Cdna4DecodeTest.F8f6f4MfmaSupportsOrdinaryAndScaledEncodings: the scaled form, and the ordinary one.
	.text
	.globl encoding_rocjitsu_scaled
encoding_rocjitsu_scaled:
	.long 0xD3AC0000, 0x0002DD5F, 0xD3AD0C20, 0x8482F114
	.globl encoding_rocjitsu_ordinary
encoding_rocjitsu_ordinary:
	.long 0xD3AD0030, 0x04C2F572
; LLVM's own assembler tests, the scaled form.
	.globl encoding_llvm_scaled
encoding_llvm_scaled:
	.long 0xD3AC0000, 0x00020D05, 0xD3AD0C00, 0x84021908
