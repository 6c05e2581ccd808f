#!/bin/bash
# Packages: ghdl ghdl-mcode. Needs: ghdl
# A circuit in VHDL is compiled into memory and simulated.
cat >work.vhdl <<'END'
library ieee; use ieee.std_logic_1164.all; use ieee.numeric_std.all; use std.textio.all;
entity work_bench is end;
architecture a of work_bench is
  signal clk : std_logic := '0'; signal r : unsigned(31 downto 0) := x"00000001"; signal s : unsigned(31 downto 0) := x"00000000";
begin
  process begin for k in 1 to 120000 loop clk <= not clk; wait for 5 ns; end loop; wait; end process;
  process (clk) variable l : line; variable n : natural := 0; begin
    if rising_edge(clk) then r <= r(30 downto 0) & (r(31) xor r(21) xor r(1) xor r(0)); s <= s + r; n := n + 1;
      if n mod 6000 = 0 then write(l, to_integer(r(30 downto 0))); write(l, string'(" ")); write(l, to_integer(s(30 downto 0))); writeline(output, l); end if; end if;
  end process;
end;
END
ghdl -a --std=08 work.vhdl && ghdl -e --std=08 work_bench || exit
echo ready
ghdl -r --std=08 work_bench
echo "status $?"
