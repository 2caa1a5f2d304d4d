#!/bin/sh
# Assembly that carries code objects: embed.sh FILE..., each build/hip/ARCH/STEM.hsaco or build/hip/cuda/STEM.fatbin; the table ends with zeros.
echo '.section .data.rel.ro,"aw"'
echo '.balign 8'
echo '.globl mxh_modules'
echo 'mxh_modules:'
i=0
for f in "$@"; do
  echo "  .quad arch$i, stem$i, first$i, last$i"
  i=$((i + 1))
done
echo '  .quad 0, 0, 0, 0'
i=0
for f in "$@"; do
  stem=$(basename "$f"); arch=$(basename "$(dirname "$f")")
  printf 'arch%d: .asciz "%s"\nstem%d: .asciz "%s"\n.balign 4096\nfirst%d: .incbin "%s"\nlast%d: .byte 0\n' $i "$arch" $i "${stem%.*}" $i "$f" $i
  i=$((i + 1))
done
echo '.section .note.GNU-stack,"",@progbits'
