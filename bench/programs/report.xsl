<!-- The records sorted by name, each with the number of those that share its first tag. -->
<xsl:stylesheet version="1.0" xmlns:xsl="http://www.w3.org/1999/XSL/Transform">
  <xsl:output method="text"/>
  <xsl:key name="tagged" match="record" use="tag"/>
  <xsl:template match="/records">
    <xsl:for-each select="record">
      <xsl:sort select="name"/>
      <xsl:value-of select="concat(@id, ' ', name, ' ', price, ' ', count(key('tagged', tag[1])), '&#10;')"/>
    </xsl:for-each>
  </xsl:template>
</xsl:stylesheet>
