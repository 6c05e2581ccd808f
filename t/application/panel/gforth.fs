\ Packages: gforth. Needs: gforth
: work ( s n -- s ) 0 ?do 69069 * i + 1048575 and loop ;
create kept 1000 cells allot
: fill-it 1000 0 do i i * kept i cells + ! loop ;
: sum 0 1000 0 do kept i cells + @ + loop ;
: there? s" go" r/o open-file if drop false else close-file drop true then ;
fill-it .( ready) cr stdout flush-file drop
: wait begin 1 20000 work drop there? until ;
wait 1 60000000 work . sum . cr bye
